package ops

import (
	"cmp"
	"path/filepath"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/problem"
)

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
	rules, err := permission.RecommendRules(a.Env, v.ID, a.Tools())
	if err != nil {
		return problem.From(err)
	}
	v.Permissions = &ClientPermissions{report, rules.Path != ""}
	return nil
}
