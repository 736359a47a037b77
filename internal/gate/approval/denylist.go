package approval

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// Denylist is a Store that also keeps every restriction in a file. It is safe for concurrent use.
type Denylist struct {
	Store
	logger *slog.Logger
	notify func(note string)

	mu   sync.Mutex // guards the following fields
	file *denylistFile
}

// NewDenylist returns a Denylist with the file at path. tell, which may be nil, receives notes about the file.
func NewDenylist(path string, under Store, logger *slog.Logger, tell func(note string)) *Denylist {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Denylist{Store: under, logger: logger, notify: tell, file: newDenylistFile(path)}
}

// Close closes the file.
func (k *Denylist) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.file.close()
}

// LoadApprovals returns the decisions of the store combined with the restrictions of the file. If one of the two
// lacks some, it is updated.
func (k *Denylist) LoadApprovals(ctx context.Context) (StoredDecisions, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	saved, err := k.Store.LoadApprovals(ctx)
	if err != nil {
		return saved, err
	}
	r, err := k.file.read()
	if err != nil {
		return StoredDecisions{}, err
	}
	added := mergeRestrictions(&saved, r)
	if added {
		k.logger.Warn("the database lacked restrictions that the restrictions file has")
		if err := k.Store.ReplaceApprovals(ctx, saved); err != nil {
			k.logger.Error("restrictions from the restrictions file cannot be stored in the database", "error", err)
		}
	}
	k.logDamage(r, saved)
	if err := k.file.continueAfterRead(toFileEntries(saved), saved.RestrictionsLost, r); err != nil {
		k.logger.Error("the restrictions file cannot be written", "path", k.file.path, "error", err)
	}
	return saved, nil
}

// logDamage logs the damage of the file.
func (k *Denylist) logDamage(r readResult, saved StoredDecisions) {
	note := ""
	switch {
	case r.damage != "" && saved.Lost:
		note = "The restrictions file is damaged, and so was the database: " + r.damage + ". Some of them may be lost."
	case r.damage != "":
		note = "The restrictions file was damaged and is rewritten from the database: " + r.damage + "."
	case !r.exists && saved.Lost:
		note = "The restrictions file is missing, and so was the database: blocked and disabled tools are no longer known."
	}
	if note == "" {
		return
	}
	k.logger.Error("the restrictions file is damaged", "what", note)
	if k.notify != nil {
		k.notify(note)
	}
}

// SaveApprovals stores a change in the file and then in the store. If the store fails, the file is
// restored.
func (k *Denylist) SaveApprovals(ctx context.Context, c ChangeSet) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	lines, sync := k.file.changedLines(c)
	before := k.file.undoLinesFor(lines)
	if err := k.file.appendLines(lines, sync); err != nil {
		return err
	}
	err := k.Store.SaveApprovals(ctx, c)
	if err == nil {
		return nil
	}
	if back := k.file.restoreEntries(before, sync); back != nil {
		k.logger.Warn("could not remove a decision from the restrictions file, although the database did not store it", "error", back)
	}
	return err
}

// ReplaceApprovals replaces the content of the store and the file.
func (k *Denylist) ReplaceApprovals(ctx context.Context, saved StoredDecisions) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.Store.ReplaceApprovals(ctx, saved); err != nil {
		return err
	}
	return k.file.replaceEntries(toFileEntries(saved), saved.RestrictionsLost)
}

// mergeRestrictions adds the restrictions of the file, and reports whether the store lacked some.
func mergeRestrictions(saved *StoredDecisions, r readResult) (added bool) {
	if !saved.Lost && r.damage != "" && len(saved.Tools)+len(saved.Launches) == 0 {
		saved.Lost, added = true, true // an empty database has lost the decisions in the file
	}
	saved.RestrictionsLost = saved.Lost && (r.restrictionsLost || !r.isIntact())
	rest := maps.Collect(r.entries.all())
	for server, rows := range saved.Tools {
		for i, row := range rows {
			s := newDecisionKey(server, row)
			if kept, there := rest[s]; there {
				e := kept.restrictStored(row.DefinitionDecisions, r.isIntact())
				added = added || e.Pin != row.Pin || e.Block != row.Block || e.Off != row.Off
				rows[i].DefinitionDecisions = e
				delete(rest, s)
			}
		}
	}
	added = r.keepLaunchesInBoth(saved) || added
	for s, e := range rest { // servers that the store does not contain
		if s.Kind != kindLaunch {
			row := s.emptyRow()
			row.DefinitionDecisions = e.restrictStored(row.DefinitionDecisions, r.isIntact())
			saved.Tools[s.Server] = append(saved.Tools[s.Server], row)
			added = added || row.HasDecision()
		}
	}
	return added
}

// keepLaunchesInBoth keeps launches that are in both the store and the file. A different launch in the file was
// reviewed earlier.
func (r readResult) keepLaunchesInBoth(saved *StoredDecisions) (added bool) {
	saved.Reviewed = map[string]tool.Fingerprint{}
	for s, e := range r.entries.all() {
		if s.Kind == kindLaunch {
			saved.Reviewed[s.Server] = tool.Fingerprint(e.Was)
		}
	}
	var both []ApprovedLaunch
	for _, l := range saved.Launches {
		if f, there := saved.Reviewed[l.Server]; there && f == l.Fingerprint || !r.isIntact() {
			both = append(both, l)
			delete(saved.Reviewed, l.Server)
		}
	}
	added = len(both) != len(saved.Launches)
	saved.Launches = both
	return added
}
