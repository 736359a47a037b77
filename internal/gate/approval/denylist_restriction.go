package approval

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// Denylist is an approval.Keeper over another one, with the file as second home.
// It is safe for concurrent use.
type Denylist struct {
	Store
	logger *slog.Logger
	tell   func(note string)

	mu   sync.Mutex // guards what follows
	file *file
}

// NewDenylist makes a keeper with the file at path. What happened to the file is told
// with tell, which may be nil.
func NewDenylist(path string, under Store, logger *slog.Logger, tell func(note string)) *Denylist {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Denylist{Store: under, logger: logger, tell: tell, file: newFile(path)}
}

// Close closes the file.
func (k *Denylist) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.file.close()
}

// LoadApprovals returns what the store has, and what narrows of the file. What
// one of them lacks it gets.
func (k *Denylist) LoadApprovals(ctx context.Context) (Saved, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	saved, err := k.Store.LoadApprovals(ctx)
	if err != nil {
		return saved, err
	}
	r, err := k.file.read()
	if err != nil {
		return Saved{}, err
	}
	added := merge(&saved, r)
	if added {
		k.logger.Warn("the database lacked decisions that narrow, which its second home has")
		if err := k.Store.RestoreApprovals(ctx, saved); err != nil {
			k.logger.Error("what the second home of the decisions has cannot be stored in the database", "error", err)
		}
	}
	k.report(r, saved)
	if err := k.file.adopt(entriesOf(saved), saved.RestrictionsLost, r); err != nil {
		k.logger.Error("the second home of what narrows cannot be written", "path", k.file.path, "error", err)
	}
	return saved, nil
}

// report tells what is wrong with the file.
func (k *Denylist) report(r reading, saved Saved) {
	note := ""
	switch {
	case r.damage != "" && saved.Lost:
		note = "The second home of refusals and switches is damaged, as the database was: " + r.damage + ". Some of them may be lost."
	case r.damage != "":
		note = "The second home of refusals and switches was damaged and is written anew from the database: " + r.damage + "."
	case !r.there && saved.Lost:
		note = "The second home of refusals and switches is missing, as the database was: they are lost."
	}
	if note == "" {
		return
	}
	k.logger.Error("the second home of what narrows is damaged", "what", note)
	if k.tell != nil {
		k.tell(note)
	}
}

// SaveApprovals stores a change in the file and then in the store. A change that
// the store does not take is taken back.
func (k *Denylist) SaveApprovals(ctx context.Context, c Change) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	lines, sync := k.file.lines(c)
	before := k.file.now(lines)
	if err := k.file.write(lines, sync); err != nil {
		return err
	}
	err := k.Store.SaveApprovals(ctx, c)
	if err == nil {
		return nil
	}
	if back := k.file.undo(before, sync); back != nil {
		k.logger.Warn("a decision that was not stored cannot be taken out of its second home yet", "error", back)
	}
	return err
}

// RestoreApprovals makes the store, and the file, have what is given and nothing
// else.
func (k *Denylist) RestoreApprovals(ctx context.Context, saved Saved) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.Store.RestoreApprovals(ctx, saved); err != nil {
		return err
	}
	return k.file.become(entriesOf(saved), saved.RestrictionsLost)
}

// merge adds what narrows to what the store has, and reports whether that is
// more than it had.
func merge(saved *Saved, r reading) (added bool) {
	if !saved.Lost && r.damage != "" && len(saved.Tools)+len(saved.Launches) == 0 {
		saved.Lost, added = true, true // a database that knows nothing has lost what was in the file
	}
	saved.RestrictionsLost = saved.Lost && (r.gaps || !r.intact())
	rest := maps.Collect(r.entries.all())
	for server, rows := range saved.Tools {
		for i, row := range rows {
			s := subjectOf(server, row)
			if kept, there := rest[s]; there {
				e := kept.narrow(row.Entry, r.intact())
				added = added || e.Pin != row.Pin || e.Block != row.Block || e.Off != row.Off
				rows[i].Entry = e
				delete(rest, s)
			}
		}
	}
	added = r.mergeLaunches(saved) || added
	for s, e := range rest { // of which the store knows nothing
		if s.Kind != kindLaunch {
			row := s.row()
			row.Entry = e.narrow(row.Entry, r.intact())
			saved.Tools[s.Server] = append(saved.Tools[s.Server], row)
			added = added || row.Decided()
		}
	}
	return added
}

// mergeLaunches keeps the launches that both homes have; another one that the
// file has is known to have been reviewed.
func (r reading) mergeLaunches(saved *Saved) (added bool) {
	saved.Reviewed = map[string]tool.Fingerprint{}
	for s, e := range r.entries.all() {
		if s.Kind == kindLaunch {
			saved.Reviewed[s.Server] = tool.Fingerprint(e.Was)
		}
	}
	var both []Launch
	for _, l := range saved.Launches {
		if f, there := saved.Reviewed[l.Server]; there && f == l.Fingerprint || !r.intact() {
			both = append(both, l)
			delete(saved.Reviewed, l.Server)
		}
	}
	added = len(both) != len(saved.Launches)
	saved.Launches = both
	return added
}
