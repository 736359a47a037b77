package app

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/store"
)

// decisions is where decisions are kept. What narrows has a second home beside a
// database that is a file here. A database that is shared is the only home: what one
// instance remembers must not undo what another has decided.
func (d *daemon) decisions(dir string) approval.Store {
	if d.shared != nil {
		return d.shared
	}
	kept := approval.NewDenylist(filepath.Join(dir, "restrictions.log"), d.store, d.logger, d.damaged)
	d.onClose(func(context.Context) error { return kept.Close() })
	return kept
}

// instance is the name of this one among those that share a database.
func (d *daemon) instance() string {
	if d.shared == nil {
		return ""
	}
	return d.shared.Name()
}

// followOthers takes over what other instances store in a database that is shared.
func (d *daemon) followOthers(ctx context.Context) {
	if d.shared == nil {
		return
	}
	var left store.Shared
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.shared.Shared():
		}
		for left = d.shared.TakeShared(); ; {
			err := d.takeOver(ctx, left)
			if err == nil {
				break
			}
			d.logger.Error("what other instances have decided cannot be read yet", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(refillAgain):
				left.All = true // whatever has come meanwhile, too
			}
		}
	}
}

func (d *daemon) takeOver(ctx context.Context, s store.Shared) error {
	var decided []approval.Decided
	for server, anew := range s.Servers {
		decided = append(decided, approval.Decided{Server: server, Relaunched: anew})
	}
	if s.All {
		decided = append(decided, approval.Decided{})
	}
	var err error
	if s.All || s.Presence { // before what counts by it
		err = d.presence.Recheck(ctx)
	}
	if len(decided) > 0 && err == nil {
		err = d.book.Reload(ctx, decided...)
	}
	if s.All || s.Tokens {
		err = errors.Join(err, d.tokens.Reload(ctx))
	}
	if s.All || s.Asks {
		d.approvals.WakeAll()
		d.events.PendingChanged()
	}
	if d.events.Listening() && (len(s.Log) > 0 || s.Missed) {
		steps, missed, also := d.shared.Steps(ctx, s.Log)
		d.events.Elsewhere(steps, s.Missed || missed || also != nil)
	}
	return err
}
