package ops

import (
	"context"
	"os"
	"runtime"
	"slices"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

// LocalClients gives access to the MCP clients of one OS account, and provides the address of MCPProxy for them.
type LocalClients struct {
	*permission.AccountClients
	Endpoint func() ProxyEndpoint
	// Run runs a client's own command and returns its output.
	Run func(ctx context.Context, argv []string) (said string, err error)
	// Tokens creates agent tokens. It is nil if no daemon is running.
	Tokens TokenIssuer
}

// TokenIssuer creates and revokes agent tokens. AccessOperations implements it.
type TokenIssuer interface {
	CreateToken(ctx context.Context, by Caller, in CreateTokenRequest) (CreatedToken, error)
	RevokeToken(ctx context.Context, by Caller, in TokenRef) (RevokedToken, error)
}

// ConnectOptions selects the surface, the profile and the token of a connection.
type ConnectOptions struct {
	Surface string `json:"surface,omitempty" enum:"auto,search,lanes,all" doc:"What the client sees: search (six tools that search and call), lanes (every tool by name, with an entry for each lane) or all (every tool by name in one entry). auto, the default, selects the best one for the client."`
	Profile string `json:"profile,omitempty" doc:"The profile that limits the client. Default: no limit."`
	Token   string `json:"token,omitempty" doc:"The name of an agent token to create for the client and to write into its file. Default: no token."`
}

// FileChange is a planned or completed change of a client's file.
type FileChange struct {
	Client     string   `json:"client"`
	Name       string   `json:"name"`
	Server     string   `json:"server" doc:"The name of the MCPProxy entry in the client. If there are several entries: the first one."`
	Servers    []string `json:"servers" doc:"The names of all entries that are written or removed."`
	Surface    string   `json:"surface,omitempty" doc:"The surface after the change. For a disconnect: the surface before the change." enum:"search,lanes,all,server"`
	Path       string   `json:"path" doc:"The file that changes."`
	Target     string   `json:"target,omitempty" doc:"The target of path, if path is a symbolic link."`
	Transport  string   `json:"transport,omitempty" doc:"How the client connects to MCPProxy." enum:"http,stdio"`
	Command    []string `json:"command,omitempty" doc:"The client's own command that makes the change. Absent if MCPProxy edits the file."`
	Changed    bool     `json:"changed" doc:"Whether the file would change."`
	Difference string   `json:"difference,omitempty" doc:"The changed lines. Secrets are masked."`
	Warnings   []string `json:"warnings" doc:"Side effects of the change."`
	Next       string   `json:"next,omitempty" doc:"The action that the user must take before the change takes effect."`
	Written    bool     `json:"written" doc:"Whether the file was changed."`
	Change     string   `json:"change,omitempty" doc:"The id of the change, for POST /clients/undo."`
	Backup     string   `json:"backup,omitempty" doc:"The path of the backup of the file."`
	// Rules is set if the change also changes permission rules that are not in the entries.
	Rules *RulesChange `json:"rules,omitempty" doc:"The change of permission rules that belongs to the connection."`
}

// RulesChange is a change of a client's permission rules that belongs to a change of its entries.
type RulesChange struct {
	Path       string `json:"path" doc:"The file that changes."`
	Difference string `json:"difference" doc:"The changed lines. Secrets are masked."`
	Written    bool   `json:"written" doc:"Whether the file was changed."`
	Change     string `json:"change,omitempty" doc:"The change's id"`
	Backup     string `json:"backup,omitempty" doc:"The path of the backup of the file."`
}

// ConnectPlan is a planned change of a client's file.
type ConnectPlan struct {
	FileChange

	client   clients.Client
	endpoint ProxyEndpoint
	entries  []clients.PlannedEntry // entries to write, without a token; empty for a disconnect
	removed  []string               // names of entries that the change removes
	options  ConnectOptions
	edit     func(clients.ClientDoc, []clients.PlannedEntry) ([]byte, error)
	before   clients.ClientDoc
	from     clients.UserFile
	text     []byte
	what     string
	rules    permission.SurfaceChange
}

// tokenPlaceholder appears in the displayed diff instead of a token that does not exist yet.
const tokenPlaceholder = "mcpp_t_made-when-this-is-written"

// PlanConnect plans to add MCPProxy to a client's file. The error is a *problem.Problem. Its code is NOT_FOUND for an
// unknown client, and INVALID_CONFIG or CONFLICT for a file that cannot be changed.
func (a *LocalClients) PlanConnect(word string, w ConnectOptions) (ConnectPlan, error) {
	p, err := a.newConnectPlan(word, "connect")
	if err != nil {
		return ConnectPlan{}, err
	}
	surface, err := p.client.ResolveSurface(clients.Surface(w.Surface))
	if err != nil {
		return ConnectPlan{}, err
	}
	if p.entries, err = p.endpoint.plannedEntries(p.client, surface, w.Profile); err != nil {
		return ConnectPlan{}, err
	}
	p.keepEntryNames(surface)
	p.options, p.Transport, p.Next, p.Surface = w, transportName(p.client), p.client.Reload, string(surface)
	shown := p.entries
	if w.Token != "" {
		if a.Tokens == nil {
			return ConnectPlan{}, problem.New(problem.DaemonNotRunning, "A token can only be created while MCPProxy is running.", "Start it: `mcpproxy serve`.")
		}
		if err := checkFilePrivate(p.from); err != nil {
			return ConnectPlan{}, err
		}
		shown = entriesWithToken(p.entries, tokenPlaceholder)
	}
	a.addConnectWarnings(&p)
	if p.endpoint.Locked && w.Token == "" {
		p.Warnings = append(p.Warnings, "MCPProxy requires a token from every client (require_mcp_auth). Pass --token NAME.")
	}
	if p.rules, err = permission.NewSurfaceChange(a.Env, p.Client, p.rulesTarget(surface), a.Tools()); err != nil {
		return ConnectPlan{}, err
	}
	p.edit = func(d clients.ClientDoc, entries []clients.PlannedEntry) ([]byte, error) {
		text, err := p.client.TextWithEntries(d, entries, p.endpoint.isOwnURL)
		if err != nil {
			return nil, err
		}
		after, err := d.Parse(text)
		if err != nil {
			return nil, err
		}
		return p.rules.EntryRules(after)
	}
	if err := p.computeEdit(shown); err != nil {
		return ConnectPlan{}, err
	}
	if err := a.previewRules(&p); err != nil {
		return ConnectPlan{}, err
	}
	if len(p.entries) == 1 && len(p.removed) == 0 && !p.before.ServerEntry(p.Server).Exists() {
		p.Command = p.client.CommandToAddServer(a.Env, p.Server, shown[0].Address)
	}
	return p, nil
}

// keepEntryNames gives the planned entries the names of the entries that they replace. It also determines which entries
// are removed.
func (p *ConnectPlan) keepEntryNames(surface clients.Surface) {
	planned := p.client.NewProxyEntries(surface)
	there := p.before.ProxyEntries(p.endpoint.isOwnURL)
	for i, e := range planned {
		if p.before.ServerEntry(e.Name).IsObject() {
			continue
		}
		at := slices.IndexFunc(there, func(old clients.ProxyEntry) bool {
			same := old.Surface == e.Surface || len(planned) == 1 && old.Surface != clients.SurfaceLanes
			return same && old.Lane == e.Lane && old.Surface != clients.SurfaceServer && !clients.IsOwnEntryName(old.Name)
		})
		if at >= 0 {
			p.entries[i].Name = there[at].Name
		}
	}
	p.Servers = mapSlice(p.entries, func(e clients.PlannedEntry) string { return e.Name })
	p.Server = p.Servers[0]
	p.removed = p.before.ReplacedEntries(p.entries, p.endpoint.isOwnURL)
}

// rulesTarget returns the target of the permission rules, which is the planned entries.
func (p *ConnectPlan) rulesTarget(surface clients.Surface) permission.Target {
	t := permission.Target{Surface: surface, Entries: p.client.NewProxyEntries(surface)}
	for i := range t.Entries {
		t.Entries[i].Name = p.entries[i].Name
	}
	return t
}

// previewRules adds the change of permission rules outside of the entries to the plan.
func (a *LocalClients) previewRules(p *ConnectPlan) error {
	after, err := p.before.Parse(p.text)
	if err != nil {
		return err
	}
	rules, err := p.rules.Prepare(a.Env, after)
	if err != nil {
		return err
	}
	if rules.Changed {
		p.Changed = true
		p.Rules = &RulesChange{Path: rules.Path, Difference: rules.Difference}
		p.Warnings = append(p.Warnings, rules.Warnings...)
	}
	return nil
}

// entriesWithToken returns a copy of the entries with the token.
func entriesWithToken(entries []clients.PlannedEntry, token string) []clients.PlannedEntry {
	all := slices.Clone(entries)
	for i := range all {
		all[i].Address.Token = token
	}
	return all
}

// PlanDisconnect plans to remove MCPProxy from a client's file. It returns NOT_FOUND if MCPProxy is not in it.
func (a *LocalClients) PlanDisconnect(word string) (ConnectPlan, error) {
	p, err := a.newConnectPlan(word, "disconnect")
	if err != nil {
		return ConnectPlan{}, err
	}
	p.Servers = p.removableEntries()
	if len(p.Servers) == 0 {
		return ConnectPlan{}, problem.New(problem.NotFound, "MCPProxy is not in "+p.Path+".", "`mcpproxy connect "+p.Client+"` writes it there.")
	}
	p.Server, p.removed = p.Servers[0], p.Servers
	first := a.firstConnectChange(p.FileChange)
	p.edit = func(d clients.ClientDoc, _ []clients.PlannedEntry) ([]byte, error) {
		return p.textWithoutEntries(d, first)
	}
	p.Next = p.client.Reload
	if err := p.computeEdit(nil); err != nil {
		return ConnectPlan{}, err
	}
	if len(p.Servers) == 1 {
		p.Command = p.client.CommandToRemoveServer(a.Env, p.Server)
	}
	if rules, err := a.permissionRuleChanges(p.Client); err == nil && len(rules) > 0 {
		p.Warnings = append(p.Warnings, "The permission rules that MCPProxy wrote into "+rules[0].Path+" are removed, too.")
	}
	return p, nil
}

// removableEntries returns the names of the entries for all surfaces. It includes entries for a single server only if
// there are no others.
func (p *ConnectPlan) removableEntries() []string {
	var names, servers []string
	for _, e := range p.before.ProxyEntries(p.endpoint.isOwnURL) {
		if e.Surface == clients.SurfaceServer {
			servers = append(servers, e.Name)
		} else {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return servers
	}
	return names
}

// permissionRuleChanges returns the recorded changes of permission rules for a client.
func (a *LocalClients) permissionRuleChanges(client string) ([]clients.Change, error) {
	j, err := a.Open()
	if err != nil {
		return nil, err
	}
	return permission.NotUndoneRuleChanges(j, a.Env, client)
}

// firstConnectChange returns the oldest connect change of the client since its last disconnect, or nil if none is
// recorded.
func (a *LocalClients) firstConnectChange(of FileChange) *clients.Change {
	j, err := a.Open()
	if err != nil {
		return nil
	}
	all, err := j.Changes()
	if err != nil {
		return nil
	}
	var first *clients.Change
	for i, c := range all {
		switch {
		case c.Path != of.Path || c.Undone != nil:
		case c.What == "disconnect "+of.Client:
			return first
		case c.What == "connect "+of.Client:
			first = &all[i]
		}
	}
	return first
}

// textWithoutEntries returns the file without MCPProxy and without the empty objects that connecting added. It returns
// nil if connecting created the file.
func (p *ConnectPlan) textWithoutEntries(d clients.ClientDoc, first *clients.Change) (text []byte, err error) {
	text = d.Text
	for _, name := range p.removed {
		at, err := d.Parse(text)
		if err != nil {
			return nil, err
		}
		if text, err = at.TextWithoutServer(name); err != nil {
			return nil, err
		}
	}
	if text = append([]byte{}, text...); first == nil { // not nil, because nil means no file
		return text, nil
	}
	var before []byte
	if !first.Created {
		if before, err = os.ReadFile(first.Backup); err != nil {
			return text, nil // the backup no longer exists, so the earlier text is unknown
		}
	}
	if text, err = textedit.PruneEmptyObjects(text, before, d.Format, d.ServersPath()...); err != nil || first.Created && clients.IsEmptyDocument(text) {
		return nil, err
	}
	return append([]byte{}, text...), nil
}

// newConnectPlan reads the client's file and returns a plan without an edit. The argument what is "connect" or
// "disconnect".
func (a *LocalClients) newConnectPlan(word, what string) (ConnectPlan, error) {
	c, err := clients.FindClient(word)
	if err != nil {
		return ConnectPlan{}, err
	}
	p := ConnectPlan{client: c, endpoint: a.Endpoint(), what: what + " " + c.ID, FileChange: FileChange{Client: c.ID, Name: c.Name, Warnings: []string{}}}
	p.Path = c.TargetFile(a.Env).Path
	if p.from, p.before, err = a.readTargetFile(c); err != nil {
		return ConnectPlan{}, err
	}
	if p.from.Target != p.Path {
		p.Target = p.from.Target
	}
	at, _ := clients.FindProxyRegistration([]clients.ClientDoc{p.before}, p.endpoint.isOwnURL)
	p.Server, p.Servers, p.Surface = at.Server, []string{at.Server}, string(at.Surface)
	return p, nil
}

// readTargetFile reads and parses the file of a client that contains or will contain MCPProxy.
func (a *LocalClients) readTargetFile(c clients.Client) (clients.UserFile, clients.ClientDoc, error) {
	target := c.TargetFile(a.Env)
	file, err := clients.ReadUserFile(target.Path, target.AllowedLinkRoots(a.Env)...)
	if err != nil {
		return file, clients.ClientDoc{}, err
	}
	doc, err := target.Parse(file.Text)
	return file, doc, err
}

func transportName(c clients.Client) string {
	if c.HTTP {
		return "http"
	}
	return "stdio"
}

// checkFilePrivate rejects a file that other users can read, because they could read the token.
func checkFilePrivate(f clients.UserFile) error {
	if runtime.GOOS == "windows" || f.Mode&0o077 == 0 {
		return nil
	}
	return problem.Newf(problem.Conflict, "Other users can read %s (its mode is %04o), so a token in it would leak.", f.Path, f.Mode).
		WithHint("Remove their access with chmod 600, then try again.")
}

// addConnectWarnings adds warnings about the change to the plan.
func (a *LocalClients) addConnectWarnings(p *ConnectPlan) {
	for _, name := range p.Servers {
		there := p.before.ServerEntry(name)
		if there.IsObject() && !clients.PointsToMCPProxy(there, p.endpoint.isOwnURL) {
			p.Warnings = append(p.Warnings, "The entry "+name+" leads to "+clients.DescribeEntry(there)+" now. Its credentials are removed.")
		}
	}
	for _, name := range p.removed {
		if there := p.before.ServerEntry(name); !clients.PointsToMCPProxy(there, p.endpoint.isOwnURL) {
			p.Warnings = append(p.Warnings, "The entry "+name+" leads to "+clients.DescribeEntry(there)+" now. It is removed.")
		}
	}
	for _, f := range p.client.Files(a.Env) {
		if f.Path == p.Path && slices.Equal(f.Key, p.before.Key) { // of a project in the home directory, too
			continue
		}
		d, ok := f.Read()
		for _, name := range p.Servers {
			if ok && d.ServerEntry(name).Exists() && f.Scope != clients.System {
				p.Warnings = append(p.Warnings, "Another entry "+name+" in "+f.Path+" takes precedence in projects that use that file.")
			}
		}
	}
}

// computeEdit computes the edited text and sets Changed and Difference.
func (p *ConnectPlan) computeEdit(entries []clients.PlannedEntry) (err error) {
	if p.text, err = p.edit(p.before, entries); err != nil {
		return p.addPathToError(err)
	}
	p.Changed = !slices.Equal(p.text, p.from.Text)
	p.Difference = textedit.Diff(p.from.Text, p.text)
	return nil
}

// addPathToError adds the file's path to an error.
func (p *ConnectPlan) addPathToError(err error) error {
	was := problem.From(err)
	return problem.New(was.Code, p.Path+": "+was.Message, was.Hint)
}
