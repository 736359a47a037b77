package app

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// newDecisionStore returns the store of approvals. A local database has the denylist file in addition. A shared database is the only store: the file of one
// instance must not undo the decisions of another.
func (d *daemon) newDecisionStore(dir string) approval.Store {
	if d.shared != nil {
		return d.shared
	}
	kept := approval.NewDenylist(filepath.Join(dir, "restrictions.log"), d.store, d.logger, d.recordDenylistDamage)
	d.onClose(func(context.Context) error { return kept.Close() })
	return kept
}

// pauseStore returns the store of the kill switch. A local database can be lost or damaged, so a file is safer.
func (d *daemon) pauseStore(dir string) pause.Store {
	if d.shared != nil {
		return d.shared
	}
	return pause.File{Path: filepath.Join(dir, "pause.json")}
}

// readPause reads whether calls are paused, until it succeeds.
func (d *daemon) readPause(ctx context.Context) {
	for err := d.pause.Reload(ctx, false); err != nil; err = d.pause.Reload(ctx, false) {
		d.logger.Error("cannot read whether calls are paused, so every call is rejected", "error", err)
		if !sleep(ctx, restoreRetryInterval) {
			return
		}
	}
	if s, _ := d.pause.Current(); s.Paused {
		d.logger.Warn("calls are paused: every call is rejected", "by", s.By, "since", s.At, "reason", s.Reason)
	}
}

// instanceName returns the name of this instance in a shared database.
func (d *daemon) instanceName() string {
	if d.shared == nil {
		return ""
	}
	return d.shared.InstanceName()
}

// followOtherInstances applies changes that other instances store in a shared database.
func (d *daemon) followOtherInstances(ctx context.Context) {
	if d.shared == nil {
		return
	}
	var left store.RemoteChanges
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.shared.RemoteChangeSignal():
		}
		for left = d.shared.TakeRemoteChanges(); ; {
			err := d.applyRemoteChanges(ctx, left)
			if err == nil {
				break
			}
			d.logger.Error("the decisions of other instances cannot be read yet", "error", err)
			if !sleep(ctx, restoreRetryInterval) {
				return
			}
			left.All = true // including everything that has arrived since then
		}
	}
}

func (d *daemon) applyRemoteChanges(ctx context.Context, s store.RemoteChanges) error {
	var decided []approval.DecisionEvent
	for server, anew := range s.Servers {
		decided = append(decided, approval.DecisionEvent{Server: server, Relaunched: anew})
	}
	if s.All {
		decided = append(decided, approval.DecisionEvent{})
	}
	var err error
	if s.All || s.Presence { // first, because the rest depends on it
		err = d.presence.Reload(ctx)
	}
	if len(decided) > 0 && err == nil {
		err = d.book.Reload(ctx, decided...)
	}
	if s.All || s.Tokens {
		err = errors.Join(err, d.tokens.Reload(ctx))
	}
	if s.All || s.Pause {
		err = errors.Join(err, d.pause.Reload(ctx, s.Pause))
	}
	if s.All || s.Questions {
		d.approvals.WakeAll()
		d.events.PendingChanged()
	}
	if d.events.NeedsEntries() && (len(s.LogNotices) > 0 || s.LogMissed) {
		steps, missed, also := d.shared.ReadRemoteCallEvents(ctx, s.LogNotices)
		d.events.AddRemoteEntries(steps, s.LogMissed || missed || also != nil)
	}
	return err
}

// restoreRetryInterval is the time between two tries to store decisions again.
const restoreRetryInterval = time.Second

// sleep waits. It returns false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// storeDecisionsAgainOnReopen writes the decisions in memory to the database again whenever it was reopened, since it may be a new one.
func (d *daemon) storeDecisionsAgainOnReopen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.store.ReopenSignal():
		}
		for err := d.storeDecisionsAgain(ctx); err != nil; err = d.storeDecisionsAgain(ctx) {
			d.logger.Error("could not write the decisions to the reopened database; retrying", "error", err)
			if !sleep(ctx, restoreRetryInterval) {
				return
			}
		}
		d.catalog.ResaveAllToolLists()
		d.recordSystemEvent("database_reopened", "The decisions were stored again.")
	}
}

func (d *daemon) storeDecisionsAgain(ctx context.Context) error {
	return errors.Join(d.presence.RewriteStore(ctx), d.book.RewriteStore(ctx, d.listedDefinition), d.tokens.StoreAllAgain(ctx), d.mcp.StoreSessionKeyAgain(ctx))
}

// listedDefinition returns the text of a definition if its server still lists it.
func (d *daemon) listedDefinition(kind tool.DefinitionKind, id tool.ID, f tool.Fingerprint) json.RawMessage {
	if kind != tool.KindTool {
		if o := d.catalog.Primitives(id.Server).FindReviewable(kind, id.Tool); o != nil && o.Fingerprint == f {
			return o.Raw
		}
		return nil
	}
	if t := d.catalog.Current().Tool(id); t != nil && t.Fingerprint() == f {
		return t.Raw
	}
	return nil
}

// recordDenylistDamage records damage of the denylist file.
func (d *daemon) recordDenylistDamage(note string) {
	d.recordEvent(activity.Record{Type: activity.System, Status: activity.Failed,
		ErrorMessage: note, Metadata: activity.Metadata{Action: "restrictions_damaged"}})
}
