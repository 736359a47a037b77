package ops

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/problem"
)

// ClientOperations implements the daemon's operations on MCP clients. Only users may change a file, and each change is
// recorded.
type ClientOperations struct {
	Account *LocalClients
	Gateway *Gateway
}

// ClientRef identifies a client by its ID, never by a path.
type ClientRef struct {
	Client string `path:"client" doc:"The id of the client, such as claude-code."`
	DryRun bool   `json:"dry_run" doc:"Whether to report the change without making it."`
}

// ConnectRequest is a request to connect a client.
type ConnectRequest struct {
	ClientRef
	ConnectOptions
}

// ClientChangeRef identifies a change of a client's file.
type ClientChangeRef struct {
	Change string `json:"change" required:"true" doc:"The id of the change."`
}

// ListClients returns all supported clients and their connections to MCPProxy.
func (o *ClientOperations) ListClients(context.Context, Caller, Nothing) (ClientList, error) {
	return o.Account.ListClients()
}

// ConnectClient adds MCPProxy to a client's file.
func (o *ClientOperations) ConnectClient(ctx context.Context, c Caller, in ConnectRequest) (FileChange, error) {
	return o.changeFile(ctx, c, "connect_client", in.ClientRef, func() (ConnectPlan, error) { return o.Account.PlanConnect(in.Client, in.ConnectOptions) })
}

// DisconnectClient removes MCPProxy from a client's file.
func (o *ClientOperations) DisconnectClient(ctx context.Context, c Caller, in ClientRef) (FileChange, error) {
	return o.changeFile(ctx, c, "disconnect_client", in, func() (ConnectPlan, error) { return o.Account.PlanDisconnect(in.Client) })
}

// changeFile prepares a change of a client's file, applies it unless it is a dry run, and records it.
func (o *ClientOperations) changeFile(ctx context.Context, c Caller, action string, in ClientRef, prepare func() (ConnectPlan, error)) (FileChange, error) {
	plan, err := prepare()
	if err != nil || in.DryRun || !plan.Changed {
		return plan.FileChange, err
	}
	out := plan.FileChange
	err = o.Gateway.runConfigChange(c, action, plan.Client, func() error {
		out, err = o.Account.ApplyPlan(ctx, c, plan)
		return err
	})
	return out, err
}

// UndoClientChange undoes a change of a client's file.
func (o *ClientOperations) UndoClientChange(_ context.Context, c Caller, in ClientChangeRef) (change PastChange, err error) {
	err = o.Gateway.runConfigChange(c, "undo_client_change", in.Change, func() error {
		change, err = o.Account.UndoChange(in.Change)
		return err
	})
	return change, err
}

// WritePermissionRules writes permission rules to a client's file. Reads then run without asking, and all other calls
// ask.
func (o *ClientOperations) WritePermissionRules(_ context.Context, c Caller, in ClientRef) (permission.Outcome, error) {
	out, err := o.Account.WriteRules(in.Client, true)
	if err != nil || in.DryRun || !out.Changed {
		return out, err
	}
	err = o.Gateway.runConfigChange(c, "write_permissions", out.Client, func() error {
		out, err = o.Account.WriteRules(in.Client, false)
		return err
	})
	return out, err
}

// ClientList lists all supported clients and the latest changes of their files.
type ClientList struct {
	Clients []ClientView `json:"clients"`
	Changes []PastChange `json:"changes" doc:"The latest 50 changes, newest first."`
}

// ClientView is a client and its connection to MCPProxy.
type ClientView struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Found     bool        `json:"found" doc:"Whether the client is installed."`
	FoundBy   string      `json:"found_by,omitempty" doc:"The program, file or directory by which the client was found."`
	Connected bool        `json:"connected" doc:"Whether one of its files contains MCPProxy."`
	Server    string      `json:"server" doc:"The name of the MCPProxy entry in the client, current or proposed. If there are several entries: the first one."`
	Servers   []string    `json:"servers" doc:"The names of all MCPProxy entries, current or proposed."`
	Surface   string      `json:"surface" doc:"The surface of the client. If it is not connected: the surface that connect would choose." enum:"search,lanes,all,server"`
	Path      string      `json:"path" doc:"The file of the entry, current or proposed."`
	Transport string      `json:"transport" doc:"How the client connects to MCPProxy." enum:"http,stdio"`
	LeadsTo   string      `json:"leads_to,omitempty" doc:"The target of its entry: an address or a command."`
	Foreign   bool        `json:"foreign" doc:"Whether the entry points to a program or address other than this MCPProxy."`
	Missing   string      `json:"missing,omitempty" doc:"The program of its entry, if that program does not exist."`
	Broken    []string    `json:"broken" doc:"The files of the client that cannot be read, each with the reason."`
	Entry     ClientEntry `json:"entry" doc:"The entry for MCPProxy, to add to the client's file by hand."`
	Command   []string    `json:"command,omitempty" doc:"The client's own command that adds MCPProxy."`
	Next      string      `json:"next,omitempty" doc:"The action that the user must take before a change takes effect."`
	// Permissions is set if the client is installed.
	Permissions *ClientPermissions `json:"permissions,omitempty" doc:"How the client handles calls of MCPProxy's tools. Absent if the client is not installed."`
}

// ClientEntry is MCPProxy's entry for a client's file.
type ClientEntry struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// ClientPermissions describes how a client handles calls of MCPProxy's tools.
type ClientPermissions struct {
	permission.Report
	Writable bool `json:"writable" doc:"Whether the client stores permissions in a file."`
}

// ListClients returns all supported clients.
func (a *LocalClients) ListClients() (ClientList, error) {
	out := ClientList{Clients: []ClientView{}, Changes: []PastChange{}}
	for _, c := range clients.AllClients() {
		v, err := a.clientView(c)
		if err != nil {
			return ClientList{}, err
		}
		out.Clients = append(out.Clients, v)
	}
	changes, err := a.PastChanges()
	out.Changes = append(out.Changes, changes...)
	return out, err
}

func (a *LocalClients) clientView(c clients.Client) (ClientView, error) {
	target, place := c.TargetFile(a.Env), a.Endpoint()
	v := ClientView{ID: c.ID, Name: c.Name, Path: target.Path, Transport: transportName(c), Next: c.Reload, Broken: []string{}}
	v.FoundBy, v.Found = c.FindInstallation(a.Env)
	var docs []clients.ClientDoc
	for _, f := range c.Files(a.Env) {
		if d, there := f.Read(); there {
			docs = append(docs, d)
			if d.Broken != "" {
				v.Broken = append(v.Broken, f.Path+": "+d.Broken)
			}
		}
	}
	at, connected := clients.FindProxyRegistration(docs, place.isOwnURL)
	v.Connected, v.Surface = connected, string(at.Surface)
	for _, e := range at.Entries {
		v.Servers = append(v.Servers, e.Name)
	}
	if connected {
		v.setEntryDetails(at, a.Env, place)
	}
	surface := c.SurfaceFacts().Surface
	var text []byte
	var err error
	for _, e := range c.NewProxyEntries(surface) {
		address, unknown := place.clientAddress(c, e, "")
		if unknown != nil { // the client cannot be connected now, but the example is still shown
			address.Command = cmp.Or(address.Command, "/usr/bin/mcpproxy")
		}
		if text, err = textWithExample(c, target, text, clients.PlannedEntry{Name: e.Name, Address: address}); err != nil {
			return ClientView{}, err
		}
		if !connected {
			v.Servers, v.Surface = append(v.Servers, e.Name), string(surface)
			if surface != clients.SurfaceLanes {
				v.Command = c.CommandToAddServer(a.Env, e.Name, address)
			}
		}
	}
	v.Server = v.Servers[0]
	v.Entry = ClientEntry{target.Path, string(text)}
	if err != nil || !v.Found {
		return v, err
	}
	return v, a.addPermissionReport(&v)
}

// textWithExample adds an entry to the text of a file, as an example for users who edit the file by hand.
func textWithExample(c clients.Client, target clients.File, text []byte, e clients.PlannedEntry) ([]byte, error) {
	d, err := target.Parse(text)
	if err != nil {
		return nil, err
	}
	return c.TextWithServer(d, e.Name, e.Address, nil)
}

// setEntryDetails sets the address or command of the existing entry.
func (v *ClientView) setEntryDetails(at clients.ProxyRegistration, e clients.Env, place ProxyEndpoint) {
	v.Path, v.LeadsTo = at.Doc.Path, clients.DescribeEntry(at.Entry)
	for _, entry := range at.Entries {
		if !clients.PointsToMCPProxy(entry.Value, place.isOwnURL) {
			v.Foreign, v.LeadsTo = true, clients.DescribeEntry(entry.Value)
		}
		command, _ := clients.EntryCommand(entry.Value)
		if command == "" {
			continue
		}
		there := e.Program != nil && e.Program(command) != ""
		if filepath.IsAbs(command) || strings.ContainsAny(command, `/\`) {
			there = clients.PathExists(command)
		}
		if !there {
			v.Missing = command
		}
	}
}

// addPermissionReport adds how the client handles calls of MCPProxy's tools, according to its files, to the view.
func (a *LocalClients) addPermissionReport(v *ClientView) error {
	report, err := permission.CheckClient(a.Env, v.ID, a.Tools())
	if err != nil {
		return err
	}
	rules, err := permission.RecommendRules(a.Env, v.ID, a.Tools(), "")
	if err != nil {
		return problem.From(err)
	}
	v.Permissions = &ClientPermissions{report, rules.Path != ""}
	return nil
}

// ProxyEndpoint is the address of this MCPProxy for clients.
type ProxyEndpoint struct {
	// Base is the URL for clients, such as http://127.0.0.1:8080 or https://example.com/mcpproxy. Listener is the URL on
	// this machine, if it is another one.
	Base, Listener string
	// Command is the absolute path of the program that relays MCP over stdin and stdout. Args are its arguments.
	// NoCommand is the reason if there is no such program.
	Command   string
	Args      []string
	NoCommand error
	Profiles  []string
	// Locked reports whether every client needs a token.
	Locked bool
}

// ListenerSurface is the name of the surface that is the address of the listener, if clients use another one.
const ListenerSurface = "listener"

// ClientBaseURL returns the URL for clients of a daemon with these surfaces, without a path; "" if there are none.
func ClientBaseURL(surfaces []Surface) string {
	for _, s := range surfaces {
		base, ok := strings.CutSuffix(s.Address, "/mcp")
		if !ok {
			continue
		}
		if u, err := url.Parse(base); err == nil {
			if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
				u.Host = net.JoinHostPort("127.0.0.1", u.Port())
				return u.String()
			}
		}
		return base
	}
	return ""
}

// plannedEntries returns the entries of a surface for a client, with their addresses. The profile "" means all
// profiles.
func (p ProxyEndpoint) plannedEntries(c clients.Client, s clients.Surface, profile string) (all []clients.PlannedEntry, err error) {
	for _, e := range c.NewProxyEntries(s) {
		a, err := p.clientAddress(c, e, profile)
		if err != nil {
			return nil, err
		}
		all = append(all, clients.PlannedEntry{Name: e.Name, Address: a})
	}
	return all, nil
}

// clientAddress returns the address of an entry for a client. The profile "" means all profiles.
func (p ProxyEndpoint) clientAddress(c clients.Client, e clients.ProxyEntry, profile string) (clients.ProxyAddress, error) {
	a := clients.ProxyAddress{URL: p.Base + "/mcp", Command: p.Command, Args: slices.Concat([]string{"stdio"}, p.Args), Surface: e.Surface, Profile: profile}
	if profile != "" {
		if !slices.Contains(p.Profiles, profile) {
			return a, problem.Newf(problem.NotFound, "The profile '%s' does not exist.", problem.ClipName(profile)).WithHint("See the profiles with `mcpproxy profile list`.")
		}
		a.URL += "/p/" + profile
		a.Args = append(a.Args, "--profile", profile)
	}
	switch e.Surface {
	case clients.SurfaceLanes:
		a.URL += "/all/" + e.Lane
		a.Args = append(a.Args, "--lane", e.Lane)
	case clients.SurfaceAll:
		a.URL += "/all"
		a.Args = append(a.Args, "--all")
	}
	switch {
	case c.HTTP && strings.HasSuffix(p.Base, ":0"):
		return a, problem.New(problem.DaemonNotRunning, "The address of MCPProxy is not known: it takes a free port at each start.", "Set `listen` in its configuration to an address with a port.")
	case !c.HTTP && p.NoCommand != nil:
		return a, p.NoCommand
	}
	return a, nil
}

// isOwnURL reports whether a URL belongs to this MCPProxy.
func (p ProxyEndpoint) isOwnURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (isURLUnder(u, p.Base) || isURLUnder(u, p.Listener))
}

// isURLUnder reports whether a URL has the scheme, host and port of base, and begins with its path.
func isURLUnder(u *url.URL, text string) bool {
	base, err := url.Parse(text)
	if err != nil || text == "" || u.Scheme != base.Scheme || u.Port() != base.Port() || !strings.HasPrefix(u.Path+"/", base.Path+"/") {
		return false
	}
	return u.Hostname() == base.Hostname() || u.Hostname() == "localhost" && net.ParseIP(base.Hostname()).IsLoopback()
}
