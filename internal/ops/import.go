package ops

import (
	"context"
	"errors"
	"slices"

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
		launch = replaceLaunchSecrets(launch, c.secrets, keyringReference)
		for _, s := range c.secrets {
			r.Secrets = append(r.Secrets, s.name)
		}
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
		value, err := t.target.ReadSecret(ctx, s.name)
		switch {
		case err == nil && value == s.Value:
			continue
		case err == nil:
			return names, problem.New(problem.Conflict, "The secret "+s.name+" has a different value now.", "Import it again: it gets another name.")
		case errors.Is(err, secret.ErrMissing):
			err = t.target.StoreSecret(ctx, s.name, s.Value)
		}
		if err != nil {
			return names, secretNotStoredError(s.name, err)
		}
		names = append(names, s.name)
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
