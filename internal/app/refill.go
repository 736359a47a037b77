package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store/activity"
)

// refillAgain is the time between two tries to store again what is known.
const refillAgain = time.Second

// refill stores what is known once more whenever the database was opened again,
// since that may be a new one in the place of one that was lost.
func (d *daemon) refill(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.store.Reopened():
		}
		for err := d.restore(ctx); err != nil; err = d.restore(ctx) {
			d.logger.Error("what is decided cannot be stored again yet", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(refillAgain):
			}
		}
		d.catalog.SaveAll()
		d.record(activity.Record{Type: activity.System, Status: activity.Success,
			Metadata: activity.Metadata{Action: "database_reopened", Detail: "What is decided was stored again."}})
	}
}

func (d *daemon) restore(ctx context.Context) error {
	return errors.Join(d.presence.Restore(ctx), d.book.Restore(ctx, d.definition), d.tokens.Restore(ctx))
}

// definition is the text of a definition, as long as its server lists it.
func (d *daemon) definition(kind tool.Kind, id tool.ID, f tool.Fingerprint) json.RawMessage {
	if kind != tool.KindTool {
		if o := d.catalog.Primitives(id.Server).Find(kind, id.Tool); o != nil && o.Fingerprint == f {
			return o.Raw
		}
		return nil
	}
	if t := d.catalog.Current().Tool(id); t != nil && t.Fingerprint() == f {
		return t.Raw
	}
	return nil
}

// damaged puts on record what happened to the second home of the decisions.
func (d *daemon) damaged(note string) {
	d.record(activity.Record{Type: activity.System, Status: activity.Failed,
		ErrorMessage: note, Metadata: activity.Metadata{Action: "restrictions_damaged"}})
}
