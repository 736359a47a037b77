package ops

import (
	"context"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
)

// commandTime bounds a client's own command.
const commandTime = 60 * time.Second

// Apply makes the change, and reads the file again. A token is made in the name of by.
func (a *ClientAccount) Apply(ctx context.Context, by Caller, p ConnectPlan) (FileChange, error) {
	if !p.Changed {
		return p.FileChange, nil
	}
	j, err := a.Open()
	if err != nil {
		return p.FileChange, err
	}
	if p.wish.Token != "" {
		return a.withToken(ctx, by, p, j)
	}
	if p.disconnects() {
		if err := a.withdraw(&p, j); err != nil {
			return p.FileChange, err
		}
	}
	return a.make(ctx, p, j)
}

// withdraw takes the rules out that were written for a client before it is
// disconnected, and reads its file again, which may have held them.
func (a *ClientAccount) withdraw(p *ConnectPlan, j *clients.Journal) error {
	done, err := permission.Withdraw(j, a.Env, p.Client, p.Server, a.Tools())
	if err != nil {
		p.Warnings = append(p.Warnings, "Its permission rules stay: "+problem.From(err).Message+" "+problem.From(err).Hint)
	}
	if len(done) == 0 {
		return nil
	}
	target := p.client.Target(a.Env)
	if p.from, err = clients.ReadUserFile(target.Path, target.AllowedRoots(a.Env)...); err != nil {
		return err
	}
	if p.before, err = target.Parse(p.from.Text); err != nil {
		return err
	}
	p.text, err = p.edit(p.before, p.address)
	return err
}

// make makes the change.
func (a *ClientAccount) make(ctx context.Context, p ConnectPlan, j *clients.Journal) (FileChange, error) {
	if p.Command != nil {
		if done, err := a.byCommand(ctx, &p, j); done || err != nil {
			return p.FileChange, err
		}
	}
	return p.write(j)
}

// withToken makes a token and writes it; one that is not written is revoked.
func (a *ClientAccount) withToken(ctx context.Context, by Caller, p ConnectPlan, j *clients.Journal) (FileChange, error) {
	token, err := a.Tokens.Make(ctx, by, p.wish.Token, p.wish.Profile)
	if err != nil {
		return p.FileChange, err
	}
	p.address.Token = token
	out := p.FileChange
	if p.text, err = p.edit(p.before, p.address); err == nil {
		out, err = p.write(j)
	}
	if err != nil {
		err = p.named(err)
		if late := a.Tokens.Revoke(context.WithoutCancel(ctx), by, p.wish.Token); late != nil {
			out.Warnings = append(out.Warnings, "The token "+p.wish.Token+" was made and could not be revoked: "+problem.From(late).Message)
		}
	}
	return out, err
}

// disconnects reports whether the plan takes MCPProxy out.
func (p ConnectPlan) disconnects() bool { return strings.HasPrefix(p.what, "disconnect ") }

// write edits the file.
func (p ConnectPlan) write(j *clients.Journal) (FileChange, error) {
	if p.text == nil && p.disconnects() {
		change, err := j.Remove(p.from, p.what, p.entry())
		if err != nil {
			return p.FileChange, err
		}
		return p.written(change), nil
	}
	change, err := j.Write(p.from, p.text, p.what, p.entry())
	if err != nil {
		return p.FileChange, err
	}
	p.Command = nil
	return p.written(change), nil
}

// entry is where MCPProxy stands in the file.
func (p ConnectPlan) entry() []string { return append(slices.Clone(p.before.ServersKey()), p.Server) }

func (p ConnectPlan) written(change clients.Change) FileChange {
	p.Written, p.Change, p.Backup = true, change.ID, change.Backup
	return p.FileChange
}

// byCommand has the client make the change. One that fails, or does something else,
// is said, and the file is edited instead.
func (a *ClientAccount) byCommand(ctx context.Context, p *ConnectPlan, j *clients.Journal) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	said, failed := a.Run(ctx, p.Command)
	change, err := j.Record(p.from, p.what, p.entry())
	if err != nil {
		return false, err
	}
	target := p.client.Target(a.Env)
	from, err := clients.ReadUserFile(target.Path, target.AllowedRoots(a.Env)...)
	if err != nil {
		return false, err
	}
	now, err := target.Parse(from.Text)
	if err != nil {
		return false, err
	}
	if p.holds(now) {
		p.FileChange = p.written(change)
		return true, nil
	}
	why := "it did something else"
	if failed != nil {
		why = strings.Join(strings.Fields(redact.Text(wirejson.Clip(said, 300))), " ") + " (" + failed.Error() + ")"
	}
	p.Warnings = append(p.Warnings, "`"+strings.Join(p.Command, " ")+"` did not do it, so the file was edited: "+why)
	p.from, p.before = from, now
	p.text, err = p.edit(now, p.address)
	return false, err
}

// holds reports whether the file says what it is to say.
func (p ConnectPlan) holds(now clients.Doc) bool {
	there := now.Entry(p.Server)
	if p.address.URL == "" {
		return !there.Exists()
	}
	return there.IsObject() && clients.PointsToMCPProxy(there, p.place.ours) && clients.EntryURL(there) == p.address.URL
}

// connectKinds are what is done to files of clients, as the first word of a change says.
var connectKinds = []string{"connect", "disconnect", "permissions", "import"}

// PastChange is a change of a client's file that was made.
type PastChange struct {
	ID       string     `json:"id"`
	Client   string     `json:"client"`
	What     string     `json:"what" enum:"connect,disconnect,permissions,import"`
	Path     string     `json:"path"`
	At       time.Time  `json:"at"`
	Created  bool       `json:"created" doc:"Whether the file was not there before"`
	Undone   *time.Time `json:"undone,omitempty"`
	Partly   bool       `json:"partly,omitempty" doc:"Somebody else had changed the file meanwhile: its entries alone are as they were"`
	Undoable bool       `json:"undoable" doc:"Whether it is the last one of its file that is not undone: only that one can be"`
}

// Changes are the latest changes, the newest first.
func (a *ClientAccount) Changes() ([]PastChange, error) {
	j, err := a.Open()
	if err != nil {
		return nil, err
	}
	all, err := j.Changes()
	if err != nil {
		return nil, err
	}
	out := []PastChange{}
	seen := map[string]bool{}
	for _, c := range all[:min(len(all), maxShown)] {
		if what, _, _ := strings.Cut(c.What, " "); !slices.Contains(connectKinds, what) {
			continue
		}
		past := pastOf(c)
		past.Undoable = c.Undone == nil && !seen[c.Path]
		out = append(out, past)
		seen[c.Path] = seen[c.Path] || c.Undone == nil
	}
	return out, nil
}

// maxShown is how many changes are listed.
const maxShown = 50

// Undo takes a change back, byte for byte; of a file that was changed since the entry
// alone.
func (a *ClientAccount) Undo(id string) (PastChange, error) {
	j, err := a.Open()
	if err != nil {
		return PastChange{}, err
	}
	c, err := j.Undo(id, a.Env.RestoreEntries)
	past := pastOf(c)
	if p := problem.From(err); err != nil && p.Code == problem.Conflict && past.What == "connect" && c.Undone == nil {
		err = problem.New(p.Code, p.Message, "`mcpproxy disconnect "+past.Client+"` takes the entry alone out. "+p.Hint)
	}
	return past, err
}

func pastOf(c clients.Change) PastChange {
	what, client, _ := strings.Cut(c.What, " ")
	return PastChange{ID: c.ID, Client: client, What: what, Path: c.Path, At: c.At, Created: c.Created, Undone: c.Undone, Partly: c.PartlyUndone}
}

// UndoLast takes the last connecting or disconnecting of a client back that is not
// undone, and before it the rules that were written for the client since, which say
// nothing without the entry. It returns what it has taken back, the last change first.
func (a *ClientAccount) UndoLast(word string) ([]PastChange, error) {
	c, err := clients.Find(word)
	if err != nil {
		return nil, err
	}
	all, err := a.Changes()
	if err != nil {
		return nil, err
	}
	back := []PastChange{}
	for _, change := range all {
		if change.Client == c.ID && change.Undone == nil && change.What != "import" {
			back = append(back, change)
		}
		if len(back) > 0 && back[len(back)-1].What != "permissions" {
			return a.undoAll(back)
		}
	}
	return nil, problem.New(problem.NotFound, "There is no change of "+c.Name+" to undo.", "Only what `mcpproxy connect` and `disconnect` wrote can be undone.")
}

func (a *ClientAccount) undoAll(all []PastChange) ([]PastChange, error) {
	var err error
	for i := range all {
		if all[i], err = a.Undo(all[i].ID); err != nil {
			return all[:i], err
		}
	}
	return all, nil
}
