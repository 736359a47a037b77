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

// commandTimeout limits the duration of a client's own command.
const commandTimeout = 60 * time.Second

// ApplyPlan makes the planned change and reads the file again. If it creates a token, by is the token's creator.
func (a *LocalClients) ApplyPlan(ctx context.Context, by Caller, p ConnectPlan) (FileChange, error) {
	if !p.Changed {
		return p.FileChange, nil
	}
	j, err := a.Open()
	if err != nil {
		return p.FileChange, err
	}
	if p.options.Token != "" {
		return a.createTokenAndApply(ctx, by, p, j)
	}
	if p.isDisconnect() {
		if err := a.removePermissionRules(&p, j); err != nil {
			return p.FileChange, err
		}
	}
	return a.applyWithoutToken(ctx, p, j)
}

// removePermissionRules removes the permission rules of a client that is disconnected. It then reads the client's file
// again, because the file may have contained the rules.
func (a *LocalClients) removePermissionRules(p *ConnectPlan, j *clients.Journal) error {
	done, err := permission.RemoveOwnRules(j, a.Env, p.Client, p.Server, a.Tools())
	if err != nil {
		p.Warnings = append(p.Warnings, "Its permission rules stay: "+problem.From(err).Message+" "+problem.From(err).Hint)
	}
	if len(done) == 0 {
		return nil
	}
	if p.from, p.before, err = a.readTargetFile(p.client); err != nil {
		return err
	}
	p.text, err = p.edit(p.before, p.entries)
	return err
}

// applyWithoutToken makes the change, with the client's own command if there is one.
func (a *LocalClients) applyWithoutToken(ctx context.Context, p ConnectPlan, j *clients.Journal) (FileChange, error) {
	if p.Command != nil {
		done, err := a.runClientCommand(ctx, &p, j)
		if err != nil {
			return p.FileChange, err
		}
		if done {
			a.writeRules(&p, j)
			return p.FileChange, nil
		}
	}
	return a.writeFiles(&p, j)
}

// writeFiles writes the file with the entries, then the file with the rules.
func (a *LocalClients) writeFiles(p *ConnectPlan, j *clients.Journal) (FileChange, error) {
	if string(p.text) != string(p.from.Text) || p.text == nil {
		out, err := p.writeFile(j)
		if p.FileChange = out; err != nil {
			return out, err
		}
	}
	a.writeRules(p, j)
	return p.FileChange, nil
}

// writeRules writes the permission rules that belong to the entries but are not part of them. A failure is only a
// warning, because the entries are already written and the user can write the rules separately.
func (a *LocalClients) writeRules(p *ConnectPlan, j *clients.Journal) {
	if p.Rules == nil {
		return
	}
	rules, err := p.rules.Prepare(a.Env, clients.ClientDoc{})
	var done permission.Outcome
	if err == nil && rules.Changed {
		done, err = rules.Apply(j)
	}
	if err != nil {
		why := problem.From(err)
		p.Warnings = append(p.Warnings, "The permission rules were not written: "+why.Message+" "+why.Hint+" `mcpproxy permissions "+p.Client+" --write` writes them.")
		return
	}
	changed := *p.Rules
	changed.Written, changed.Change, changed.Backup = done.Written, done.Change, done.Backup
	p.Rules, p.Written = &changed, p.Written || done.Written
	if p.Change == "" {
		p.Change, p.Backup = done.Change, done.Backup
	}
}

// createTokenAndApply creates a token and writes it to the file. It revokes the token if the write fails.
func (a *LocalClients) createTokenAndApply(ctx context.Context, by Caller, p ConnectPlan, j *clients.Journal) (FileChange, error) {
	made, err := a.Tokens.CreateToken(ctx, by, CreateTokenRequest{Name: p.options.Token, Profile: p.options.Profile})
	if err != nil {
		return p.FileChange, err
	}
	p.entries = entriesWithToken(p.entries, made.Token)
	out := p.FileChange
	if p.text, err = p.edit(p.before, p.entries); err == nil {
		out, err = a.writeFiles(&p, j)
	}
	if err != nil {
		err = p.addPathToError(err)
		if _, late := a.Tokens.RevokeToken(context.WithoutCancel(ctx), by, TokenRef{Name: p.options.Token}); late != nil {
			out.Warnings = append(out.Warnings, "The token "+p.options.Token+" was made and could not be revoked: "+problem.From(late).Message)
		}
	}
	return out, err
}

// isDisconnect reports whether the plan removes MCPProxy.
func (p ConnectPlan) isDisconnect() bool { return strings.HasPrefix(p.what, "disconnect ") }

// writeFile writes the edited text, or removes the file that connecting created.
func (p ConnectPlan) writeFile(j *clients.Journal) (FileChange, error) {
	if p.text == nil && p.isDisconnect() {
		change, err := j.RemoveFile(p.from, p.what, p.entryKeyPaths()...)
		if err != nil {
			return p.FileChange, err
		}
		return p.writtenChange(change), nil
	}
	change, err := j.WriteFile(p.from, p.text, p.what, p.entryKeyPaths()...)
	if err != nil {
		return p.FileChange, err
	}
	p.Command = nil
	return p.writtenChange(change), nil
}

// entryKeyPaths returns the key paths of the written and removed entries in the file.
func (p ConnectPlan) entryKeyPaths() (all [][]string) {
	for _, name := range p.Servers {
		all = append(all, append(slices.Clone(p.before.ServersPath()), name))
	}
	for _, name := range p.removed {
		if !slices.Contains(p.Servers, name) {
			all = append(all, append(slices.Clone(p.before.ServersPath()), name))
		}
	}
	return all
}

// writtenChange returns the file change, marked as written, with its ID and backup.
func (p ConnectPlan) writtenChange(change clients.Change) FileChange {
	p.Written, p.Change, p.Backup = true, change.ID, change.Backup
	return p.FileChange
}

// runClientCommand runs the client's own command to make the change. If the command fails or makes another change,
// runClientCommand restores the file, adds a warning to the plan and returns false, so that the file is edited instead.
func (a *LocalClients) runClientCommand(ctx context.Context, p *ConnectPlan, j *clients.Journal) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	said, failed := a.Run(ctx, p.Command)
	change, err := j.RecordExternalChange(p.from, p.what, p.entryKeyPaths()...)
	if err != nil {
		return false, err
	}
	_, now, err := a.readTargetFile(p.client)
	if err != nil {
		return false, err
	}
	if p.isAppliedIn(now) {
		p.FileChange = p.writtenChange(change)
		return true, nil
	}
	if change.ID != "" {
		if _, err := j.Undo(change.ID, a.Env.RestoreEntries); err != nil {
			return false, err
		}
	}
	why := "it made a different change"
	if failed != nil {
		why = strings.Join(strings.Fields(redact.Text(wirejson.ClipText(said, 300))), " ") + " (" + failed.Error() + ")"
	}
	p.Warnings = append(p.Warnings, "`"+strings.Join(p.Command, " ")+"` did not make the change, so MCPProxy edited the file: "+why)
	if p.from, p.before, err = a.readTargetFile(p.client); err != nil {
		return false, err
	}
	p.text, err = p.edit(p.before, p.entries)
	return false, err
}

// isAppliedIn reports whether the file contains the planned change, in any form that the client writes.
func (p ConnectPlan) isAppliedIn(now clients.ClientDoc) bool {
	if len(p.entries) == 0 {
		return !slices.ContainsFunc(p.removed, func(name string) bool { return now.ServerEntry(name).Exists() })
	}
	return !slices.ContainsFunc(p.entries, func(e clients.PlannedEntry) bool { return !p.client.HasEntry(now, e, p.endpoint.isOwnURL) })
}

// changeKinds lists the kinds of changes to client files. The description of a change begins with its kind.
var changeKinds = []string{"connect", "disconnect", "permissions", "import"}

// PastChange is a change that was made to a client's file.
type PastChange struct {
	ID       string     `json:"id"`
	Client   string     `json:"client"`
	What     string     `json:"what" enum:"connect,disconnect,permissions,import"`
	Path     string     `json:"path"`
	At       time.Time  `json:"at"`
	Created  bool       `json:"created" doc:"Whether the file was created."`
	Undone   *time.Time `json:"undone,omitempty"`
	Partly   bool       `json:"partly,omitempty" doc:"Whether another program had changed the file since, so that only the entries were restored."`
	Undoable bool       `json:"undoable" doc:"Whether the change can be undone. Only the last change of a file that was not undone can be undone."`
}

// PastChanges returns the latest changes, newest first.
func (a *LocalClients) PastChanges() ([]PastChange, error) {
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
	for _, c := range all[:min(len(all), maxListedChanges)] {
		if what, _, _ := strings.Cut(c.What, " "); !slices.Contains(changeKinds, what) {
			continue
		}
		past := newPastChange(c)
		past.Undoable = c.Undone == nil && !seen[c.Path]
		out = append(out, past)
		seen[c.Path] = seen[c.Path] || c.Undone == nil
	}
	return out, nil
}

// maxListedChanges limits the number of listed changes.
const maxListedChanges = 50

// UndoChange undoes a change. If the file has not changed since, it is restored byte for byte. Otherwise, only the
// entry is restored. The undo of a disconnect also writes the permission rules again that the disconnect removed.
func (a *LocalClients) UndoChange(id string) (PastChange, error) {
	j, err := a.Open()
	if err != nil {
		return PastChange{}, err
	}
	c, err := j.Undo(id, a.Env.RestoreEntries)
	past := newPastChange(c)
	if p := problem.From(err); err != nil && p.Code == problem.Conflict && past.What == "connect" && c.Undone == nil {
		err = problem.New(p.Code, p.Message, "`mcpproxy disconnect "+past.Client+"` removes only the entry. "+p.Hint)
	}
	if err == nil && past.What == "disconnect" {
		err = a.restoreRules(j, c)
	}
	return past, err
}

// restoreRules writes the permission rules that a disconnect removed.
func (a *LocalClients) restoreRules(j *clients.Journal, disconnect clients.Change) error {
	_, client, _ := strings.Cut(disconnect.What, " ")
	removed, err := permission.RemovedRules(j, disconnect)
	if err == nil && removed {
		_, err = a.WriteRules(client, false)
	}
	if p := problem.From(err); err != nil {
		return problem.New(p.Code, "The entries are restored, but not the permission rules: "+p.Message, "`mcpproxy permissions "+client+" --write` writes them. "+p.Hint)
	}
	return nil
}

func newPastChange(c clients.Change) PastChange {
	what, client, _ := strings.Cut(c.What, " ")
	return PastChange{ID: c.ID, Client: client, What: what, Path: c.Path, At: c.At, Created: c.Created, Undone: c.Undone, Partly: c.PartlyUndone}
}

// UndoLastConnect undoes the last connect or disconnect of a client. It first undoes the permission rules that were
// written since then. It returns the undone changes, newest first.
func (a *LocalClients) UndoLastConnect(word string) ([]PastChange, error) {
	c, err := clients.FindClient(word)
	if err != nil {
		return nil, err
	}
	all, err := a.PastChanges()
	if err != nil {
		return nil, err
	}
	back := []PastChange{}
	for _, change := range all {
		if change.Client == c.ID && change.Undone == nil && change.What != "import" {
			back = append(back, change)
		}
		if len(back) > 0 && back[len(back)-1].What != "permissions" {
			return a.undoChanges(back)
		}
	}
	return nil, problem.New(problem.NotFound, "No change of "+c.Name+" is left to undo.", "Only changes by `mcpproxy connect` and `mcpproxy disconnect` can be undone.")
}

func (a *LocalClients) undoChanges(all []PastChange) ([]PastChange, error) {
	var err error
	for i := range all {
		if all[i], err = a.UndoChange(all[i].ID); err != nil {
			return all[:i], err
		}
	}
	return all, nil
}
