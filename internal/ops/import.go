package ops

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

// ImportOptions are the options of an import.
type ImportOptions struct {
	Keyring   bool `json:"keyring" doc:"Whether to store plain-text secrets in the keyring and to replace them with references."`
	Remove    bool `json:"remove" doc:"Whether to remove the servers from the clients' files after the import."`
	Confirmed bool `json:"confirmed" doc:"Whether the user has confirmed exactly these launches. Otherwise the servers wait for review."`
	DryRun    bool `json:"dry_run" doc:"Whether to report what would be done without doing it."`
}

// Result is the result for one server.
type Result struct {
	ID      string   `json:"id"`
	Name    string   `json:"name" doc:"The name of the server in MCPProxy."`
	Added   bool     `json:"added"`
	State   string   `json:"state" doc:"The state of the server after the import, such as connecting. here: the server was already configured. review: the server needs review. Empty if nothing was done."`
	Secrets []string `json:"secrets" doc:"The names of its secrets in the keyring. With dry_run: the names that would be used."`
	Removed bool     `json:"removed" doc:"Whether the server was removed from the client's file."`
	Change  string   `json:"change,omitempty" doc:"The id of the change of the client's file, for POST /clients/undo. Absent if the file did not change."`
	Problem *Trouble `json:"problem,omitempty"`
}

// Trouble describes why the import of a server failed.
type Trouble struct {
	Code    problem.Code `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
}

func toTrouble(err error) *Trouble {
	p := problem.From(err)
	return &Trouble{p.Code, p.Message, p.Hint}
}

// Results are the results of an import, in the order of the requested IDs.
type Results struct {
	Results []Result `json:"results"`
}

// ImportServers imports the servers with the given IDs. If one server fails, its result contains the problem and the
// import continues. If an ID is unknown or the permission is missing, it imports nothing and returns a
// *problem.Problem.
func (h *FoundServers) ImportServers(ctx context.Context, ids []string, o ImportOptions) (Results, error) {
	chosen, err := h.selectByIDs(ids)
	if err != nil {
		return Results{}, err
	}
	j, err := h.account.open()
	if err != nil {
		return Results{}, err
	}
	if !o.DryRun {
		release, err := j.LockRun()
		if err != nil {
			return Results{}, err
		}
		defer release()
	}
	out := Results{make([]Result, len(chosen))}
	t := importRun{target: h.target, ImportOptions: o}
	done := map[int]int{}  // index of the result by index of the candidate
	again := map[int]int{} // index of the first result by index of a duplicate
	for at, i := range chosen {
		c := h.all[i]
		r := &out.Results[at]
		*r = Result{ID: c.ID, Name: c.Name, Secrets: []string{}}
		first := i
		if c.duplicateOf >= 0 {
			first = c.duplicateOf
		}
		before, twice := done[first]
		switch {
		case c.AlreadyAdded:
			r.State = "here"
		case twice:
			again[at] = before
		default:
			done[first] = at
			t.prepareServer(ctx, c, r)
		}
	}
	if err := t.addServers(ctx); err != nil {
		return Results{}, err
	}
	for at, before := range again {
		id := out.Results[at].ID
		out.Results[at] = out.Results[before]
		r := &out.Results[at]
		if r.ID = id; r.Added {
			r.Added, r.State = false, "here"
		}
	}
	if o.Remove && !o.DryRun {
		h.removeFromClients(j, chosen, out.Results)
	}
	return out, nil
}

// importRun is the state of a running import.
type importRun struct {
	target ImportTarget
	ImportOptions
	prepared []preparedServer
}

// preparedServer is a server that is ready to be added. Its secrets are already stored.
type preparedServer struct {
	importCandidate
	server AddServerRequest
	kept   []string
	result *Result
}

// prepareServer stores the secrets of one server and prepares its entry.
func (t *importRun) prepareServer(ctx context.Context, c importCandidate, r *Result) {
	launch := c.entry.Launch
	if t.Keyring {
		launch = ReplaceCredentials(launch, c.secrets, func(s Credential) string { return "${keyring:" + s.Name + "}" })
		r.Secrets = append(r.Secrets, mapSlice(c.secrets, func(s Credential) string { return s.Name })...)
		slices.Sort(r.Secrets)
		r.Secrets = slices.Compact(r.Secrets)
	}
	if t.DryRun {
		return
	}
	kept, err := t.storeSecrets(ctx, c)
	review := !t.Confirmed || c.entry.Quarantined || hasSecretInCommand(c.secrets) || len(c.restrictionChanges()) > 0
	if err != nil {
		r.Problem = toTrouble(err)
		t.deleteSecrets(ctx, kept)
		return
	}
	t.prepared = append(t.prepared, preparedServer{c, AddServerRequest{Name: c.Name, Launch: launch, Trust: string(c.entry.Trust), Quarantined: review}, kept, r})
}

// addServers adds all prepared servers and applies their restrictions.
func (t *importRun) addServers(ctx context.Context) error {
	if len(t.prepared) == 0 {
		return nil
	}
	servers := make([]AddServerRequest, len(t.prepared))
	for i, one := range t.prepared {
		servers[i] = one.server
	}
	views, refused, err := t.target.AddServers(ctx, servers)
	for i, one := range t.prepared {
		r := one.result
		switch {
		case err != nil:
			t.deleteSecrets(ctx, one.kept)
			continue
		case refused[i] != nil:
			r.Problem = toTrouble(refused[i])
			t.deleteSecrets(ctx, one.kept)
			continue
		}
		r.Added, r.State = true, views[i].State
		if one.server.Quarantined {
			r.State = "review"
		}
		changes := one.restrictionChanges()
		if one.entry.CallTimeout != "" {
			changes = append(changes, one.settingChange("call_timeout", one.entry.CallTimeout))
		}
		for _, change := range changes {
			if err := t.target.ChangeServer(ctx, change); err != nil && r.Problem == nil {
				r.Problem = toTrouble(err)
			}
		}
	}
	return err
}

// storeSecrets stores the missing secrets of a server and returns their names. It checks again which secrets exist,
// because time has passed since the scan.
func (t *importRun) storeSecrets(ctx context.Context, c importCandidate) (names []string, err error) {
	for _, s := range c.secrets {
		if !t.Keyring {
			break
		}
		value, err := t.target.ReadSecret(ctx, s.Name)
		switch {
		case err == nil && value == s.Value:
			continue
		case err == nil:
			return names, problem.New(problem.Conflict, "The secret "+s.Name+" has a different value now.", "Import it again: it gets another name.")
		case errors.Is(err, secret.ErrMissing):
			err = t.target.StoreSecret(ctx, s.Name, s.Value)
		}
		if err != nil {
			return names, secretNotStoredError(s.Name, err)
		}
		names = append(names, s.Name)
	}
	return names, nil
}

// secretNotStoredError converts an error of the keyring to a problem.
func secretNotStoredError(name string, err error) error {
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		return p
	}
	return problem.Newf(problem.Conflict, "The secret %s cannot be stored: %v.", name, err).WithHint("Unlock the keyring, or import without it.").Because(err)
}

// deleteSecrets deletes secrets that no server needs.
func (t *importRun) deleteSecrets(ctx context.Context, names []string) {
	for _, name := range names {
		_ = t.target.DeleteSecret(ctx, name) // a remaining secret is harmless, and the result already contains a problem
	}
}

// restrictionChanges returns the changes that restrict the server, such as allowed tools. They are applied while the
// server waits for review.
func (c importCandidate) restrictionChanges() (all []ServerChange) {
	e := c.entry
	if e.Enabled != nil && !*e.Enabled {
		all = append(all, c.settingChange("enabled", false))
	}
	if len(e.EnabledTools) > 0 {
		all = append(all, c.settingChange("enabled_tools", e.EnabledTools))
	}
	if len(e.DisabledTools) > 0 {
		all = append(all, c.settingChange("disabled_tools", e.DisabledTools))
	}
	return all
}

// settingChange returns the change that sets a key of the server.
func (c importCandidate) settingChange(key string, value any) ServerChange {
	raw, _ := wirejson.MarshalWithoutHTMLEscape(value) // strings, lists and booleans can always be encoded
	return ServerChange{ServerRef: ServerRef{Name: c.Name}, Key: key, Value: raw}
}

// Found is a server in a client's file.
type Found struct {
	ID           string        `json:"id" doc:"The id of the server. It changes when the launch changes."`
	Client       string        `json:"client" doc:"The id of the client. Empty if the server comes from a pasted text."`
	ClientName   string        `json:"client_name"`
	Path         string        `json:"path" doc:"The path of the client's file."`
	Target       string        `json:"target,omitempty" doc:"The target of path, if path is a symbolic link."`
	Scope        clients.Scope `json:"scope" doc:"The scope of the file: user, project, or local (one project of the user)."`
	Name         string        `json:"name" doc:"The name of the server in MCPProxy, or the name that an import would give it."`
	Called       string        `json:"called" doc:"The name of the server in the client."`
	Launch       config.Launch `json:"launch" doc:"How the server is started or reached. Probable secrets are masked."`
	Secrets      []InClear     `json:"secrets" doc:"Probable secrets in plain text."`
	AlreadyAdded bool          `json:"have" doc:"Whether MCPProxy already has this server."`
	IsProxy      bool          `json:"ours" doc:"Whether the entry is MCPProxy itself. It is not imported."`
	Notes        []string      `json:"notes" doc:"Differences from the client's file."`
}

// InClear is a plain-text secret in a client's file.
type InClear struct {
	Place string `json:"place" doc:"The position of the secret: env.NAME, headers.NAME, args.INDEX (from 0), command or url."`
	Name  string `json:"name" doc:"The name that the secret would have in the keyring."`
}

// BrokenFile is a file, or a server in it, that cannot be imported.
type BrokenFile struct {
	Client  string `json:"client"`
	Path    string `json:"path"`
	Message string `json:"message"`
	Unread  bool   `json:"-"` // whether the whole file cannot be read
}

// Findings lists all found servers and unreadable files.
type Findings struct {
	Found  []Found      `json:"found"`
	Broken []BrokenFile `json:"broken" doc:"Files that cannot be read, and servers that cannot be imported."`
}

// ImportTarget gives an import access to this MCPProxy.
type ImportTarget struct {
	// ConfigText returns the text of the configuration file, or nil if there is none.
	ConfigText func() ([]byte, error)
	// ServerNames returns the names of all servers, including proposed ones.
	ServerNames func(ctx context.Context) ([]string, error)
	// CheckNotSelf rejects a launch that connects back to this MCPProxy.
	CheckNotSelf func(config.Launch) error
	// ReadSecret returns the value of a secret, or secret.ErrMissing.
	ReadSecret   func(ctx context.Context, name string) (string, error)
	StoreSecret  func(ctx context.Context, name, value string) error
	DeleteSecret func(ctx context.Context, name string) error
	// AddServers adds servers. refused contains the errors of the servers that were not added, by index. If err is not
	// nil, no server is added.
	AddServers   func(context.Context, []AddServerRequest) (views []ServerView, refused []error, err error)
	ChangeServer func(context.Context, ServerChange) error
}

// AddServersOneByOneFunc returns an implementation of ImportTarget.AddServers that adds servers one after the other.
func AddServersOneByOneFunc(add func(AddServerRequest) (ServerView, error)) func(context.Context, []AddServerRequest) ([]ServerView, []error, error) {
	return func(_ context.Context, all []AddServerRequest) ([]ServerView, []error, error) {
		views, refused := make([]ServerView, len(all)), make([]error, len(all))
		for i, s := range all {
			views[i], refused[i] = add(s)
		}
		return views, refused, nil
	}
}

// Importer finds and imports the servers in the files of the MCP clients of one OS account. It uses the journal of
// changes to these files.
type Importer struct {
	env  clients.Env
	open func() (*clients.Journal, error)
	key  [32]byte // key for the hashes used as IDs, so that an ID does not reveal the secrets that it covers
}

// NewImporter returns an Importer. open opens the journal.
func NewImporter(env clients.Env, open func() (*clients.Journal, error)) *Importer {
	a := &Importer{env: env, open: open}
	rand.Read(a.key[:]) // cannot fail
	return a
}

// ImportOperations implements the daemon's operations that import servers from MCP clients. Only users may change
// anything, and changes are recorded.
type ImportOperations struct {
	account   *Importer
	targetFor func(Caller) ImportTarget
	gateway   *Gateway
	importMu  sync.Mutex // serializes imports, so that each sees the servers that the previous one added
}

// NewImportOperations returns an ImportOperations. targetFor returns the import target for a caller.
func NewImportOperations(a *Importer, targetFor func(Caller) ImportTarget, g *Gateway) *ImportOperations {
	return &ImportOperations{account: a, targetFor: targetFor, gateway: g}
}

// ImportRequest selects the servers to import.
type ImportRequest struct {
	IDs []string `json:"ids" required:"true" doc:"The ids of 1 to 1,000 servers from GET /clients/servers."`
	ImportOptions
}

// Example returns an example for the OpenAPI document.
func (ImportRequest) Example() string {
	return `{"ids": ["…"], "keyring": true, "confirmed": true} with ids of GET /clients/servers`
}

// FindServers finds the servers in the files of this account's MCP clients.
func (o *ImportOperations) FindServers(ctx context.Context, c Caller, _ Nothing) (Findings, error) {
	h, err := o.account.FindServers(ctx, o.targetFor(c), "")
	if err != nil {
		return Findings{}, err
	}
	return h.Findings, nil
}

// ImportServers imports servers. It reads the clients' files again. If an ID is unknown, it imports nothing and returns
// an error.
func (o *ImportOperations) ImportServers(ctx context.Context, c Caller, in ImportRequest) (out Results, err error) {
	o.importMu.Lock()
	defer o.importMu.Unlock()
	h, err := o.account.FindServers(ctx, o.targetFor(c), "")
	if err != nil {
		return Results{}, err
	}
	chosen, err := h.selectByIDs(in.IDs)
	if err != nil {
		return Results{}, err
	}
	if in.DryRun {
		return h.ImportServers(ctx, in.IDs, in.ImportOptions)
	}
	names := mapSlice(chosen, func(i int) string { return h.all[i].Name })
	err = o.gateway.runConfigChange(c, "import_servers", problem.ClipName(strings.Join(names, ", ")), func() error {
		out, err = h.ImportServers(ctx, in.IDs, in.ImportOptions)
		return err
	})
	return out, err
}
