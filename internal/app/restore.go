package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store/activity"
)

// restoreRetryInterval is the time between two tries to store decisions again.
const restoreRetryInterval = time.Second

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
			select {
			case <-ctx.Done():
				return
			case <-time.After(restoreRetryInterval):
			}
		}
		d.catalog.ResaveAllToolLists()
		d.recordEvent(activity.Record{Type: activity.System, Status: activity.Success,
			Metadata: activity.Metadata{Action: "database_reopened", Detail: "The decisions were stored again."}})
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
