package ops

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

// ImportOptions say how servers are taken over.
type ImportOptions struct {
	Keyring   bool `json:"keyring" doc:"Keep the secrets that stand in clear in the keyring, and refer to them."`
	Remove    bool `json:"remove" doc:"Take them out of the clients' files, once they are here."`
	Confirmed bool `json:"confirmed" doc:"A person has seen exactly these launches and wants them started; else they wait for review."`
	DryRun    bool `json:"dry_run" doc:"Only say what would be done."`
}

// Result is what became of a server.
type Result struct {
	ID      string   `json:"id"`
	Name    string   `json:"name" doc:"What it is called here."`
	Added   bool     `json:"added"`
	State   string   `json:"state" doc:"here: it was here already; review: it waits for a person; else how it is, such as connecting. Empty where nothing was done."`
	Secrets []string `json:"secrets" doc:"The names under which its secrets are kept, or would be."`
	Removed bool     `json:"removed" doc:"It was taken out of the client's file."`
	Change  string   `json:"change,omitempty" doc:"The change of the client's file, which can be undone."`
	Problem *Trouble `json:"problem,omitempty"`
}

// Trouble is why something was not done for a server.
type Trouble struct {
	Code    problem.Code `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
}

func troubleOf(err error) *Trouble {
	p := problem.From(err)
	return &Trouble{p.Code, p.Message, p.Hint}
}

// Results are those of an import, in the order of the ids.
type Results struct {
	Results []Result `json:"results"`
}

// Import takes over the servers with these ids: what fails for one is in its result, and
// keeps no other from being taken over. The error is a *problem.Problem for ids that are
// none, or where a person has to permit all of it, and then nothing was done.
func (h *ImportSet) Import(ctx context.Context, ids []string, o ImportOptions) (Results, error) {
	chosen, err := h.chosen(ids)
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
	t := taking{here: h.here, ImportOptions: o}
	done := map[int]int{}  // candidates to results
	again := map[int]int{} // results to those that they are as
	for at, i := range chosen {
		c := h.all[i]
		r := &out.Results[at]
		*r = Result{ID: c.ID, Name: c.Name, Secrets: []string{}}
		first := i
		if c.twin >= 0 {
			first = c.twin
		}
		before, twice := done[first]
		switch {
		case c.Have:
			r.State = "here"
		case twice:
			again[at] = before
		default:
			done[first] = at
			t.prepare(ctx, c, r)
		}
	}
	if err := t.add(ctx); err != nil {
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
		h.remove(j, chosen, out.Results)
	}
	return out, nil
}

// taking is an import that goes on.
type taking struct {
	here Here
	ImportOptions
	ready []ready
}

// ready is a server that can be added, whose secrets are kept.
type ready struct {
	candidate
	server NewServer
	kept   []string
	result *Result
}

// prepare makes one server ready, with its secrets.
func (t *taking) prepare(ctx context.Context, c candidate, r *Result) {
	launch := c.entry.Launch
	if t.Keyring {
		launch = with(launch, c.secret, reference)
		for _, s := range c.secret {
			r.Secrets = append(r.Secrets, s.name)
		}
		slices.Sort(r.Secrets)
		r.Secrets = slices.Compact(r.Secrets)
	}
	if t.DryRun {
		return
	}
	kept, err := t.keep(ctx, c)
	review := !t.Confirmed || c.entry.Quarantined || hides(c.secret) || len(c.changes()) > 0
	if err != nil {
		r.Problem = troubleOf(err)
		t.forget(ctx, kept)
		return
	}
	t.ready = append(t.ready, ready{c, NewServer{Name: c.Name, Launch: launch, Trust: string(c.entry.Trust), Quarantined: review}, kept, r})
}

// add adds all that are ready, and sets what narrows them.
func (t *taking) add(ctx context.Context) error {
	if len(t.ready) == 0 {
		return nil
	}
	servers := make([]NewServer, len(t.ready))
	for i, one := range t.ready {
		servers[i] = one.server
	}
	views, refused, err := t.here.Add(ctx, servers)
	for i, one := range t.ready {
		r := one.result
		switch {
		case err != nil:
			t.forget(ctx, one.kept)
			continue
		case refused[i] != nil:
			r.Problem = troubleOf(refused[i])
			t.forget(ctx, one.kept)
			continue
		}
		r.Added, r.State = true, views[i].State
		if one.server.Quarantined {
			r.State = "review"
		}
		for _, change := range append(one.changes(), one.timeout()...) {
			if err := t.here.Change(ctx, change); err != nil && r.Problem == nil {
				r.Problem = troubleOf(err)
			}
		}
	}
	return err
}

// keep puts the secrets of a server into the keyring that are not there, and returns
// their names. It asks anew what is there: a person has taken their time since.
func (t *taking) keep(ctx context.Context, c candidate) (names []string, err error) {
	for _, s := range c.secret {
		if !t.Keyring {
			break
		}
		value, err := t.here.Secret(ctx, s.name)
		switch {
		case err == nil && value == s.Value:
			continue
		case err == nil:
			return names, problem.New(problem.Conflict, "The secret "+s.name+" has another value by now.", "Import it again: it gets another name.")
		case errors.Is(err, secret.ErrMissing):
			err = t.here.Keep(ctx, s.name, s.Value)
		}
		if err != nil {
			return names, notKept(s.name, err)
		}
		names = append(names, s.name)
	}
	return names, nil
}

// notKept is why a secret is not in the keyring.
func notKept(name string, err error) error {
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		return p
	}
	return problem.Newf(problem.Conflict, "The secret %s cannot be kept: %v.", name, err).WithHint("Unlock the keyring, or import without it.").Because(err)
}

// forget takes secrets back that no server needs.
func (t *taking) forget(ctx context.Context, names []string) {
	for _, name := range names {
		_ = t.here.Forget(ctx, name) // a name too many does no harm, and the result has a problem already
	}
}

// changes are what narrows a server beside its launch. It is set while the server
// waits for review.
func (c candidate) changes() (all []ServerChange) {
	e := c.entry
	set := func(key string, value any) {
		raw, err := wirejson.Marshal(value)
		if err == nil {
			all = append(all, ServerChange{ServerRef: ServerRef{Name: c.Name}, Key: key, Value: raw})
		}
	}
	if e.Enabled != nil && !*e.Enabled {
		set("enabled", false)
	}
	if len(e.EnabledTools) > 0 {
		set("enabled_tools", e.EnabledTools)
	}
	if len(e.DisabledTools) > 0 {
		set("disabled_tools", e.DisabledTools)
	}
	return all
}

// timeout is the change for how long a call may take.
func (c candidate) timeout() []ServerChange {
	if c.entry.CallTimeout == "" {
		return nil
	}
	raw, err := wirejson.Marshal(c.entry.CallTimeout)
	if err != nil {
		return nil
	}
	return []ServerChange{{ServerRef: ServerRef{Name: c.Name}, Key: "call_timeout", Value: json.RawMessage(raw)}}
}
