package store

import (
	"context"

	"mcpproxy/internal/store/activity"
)

// EachOtherInstance calls fn for each other instance, with a function that reads the chain of that instance like
// EachChainPart.
func (db *Postgres) EachOtherInstance(ctx context.Context, fn func(name string, chain activity.ChainReader) error) error {
	stopped := ctx.Err
	return db.withSnapshotTx(ctx, func(ctx context.Context, c *pgConn) error {
		type other struct {
			id         int64
			name, host string
		}
		var o other
		var all []other
		if err := c.eachRow(ctx, scanTargets{&o.id, &o.name, &o.host}, func() error { all = append(all, o); return nil },
			"SELECT id, name, host FROM instance WHERE id <> $1 AND seq > 0 ORDER BY id", c.instance); err != nil {
			return err
		}
		for _, o := range all {
			err := fn(o.name+" on "+o.host, func(fn func(activity.ChainPart) error) (int64, activity.SpoolPosition, error) {
				return readChain(ctx, c.ofInstance(o.id), stopped, fn)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// FinishErasures makes the server remove the erased values from its tables (VACUUM) if no transaction needs them. It
// also deletes the records of the pending erasures. The operator of the server is responsible for the server's own log
// and backups.
func (db *Postgres) FinishErasures(ctx context.Context, what []activity.FieldErasure) (done bool, err error) {
	if len(what) == 0 {
		return true, nil
	}
	e, err := db.waitOpen(ctx)
	if err != nil {
		return false, err
	}
	err = e.withWriteConn(func(ctx context.Context, c *pgConn) error {
		if err := c.execScript(ctx, "VACUUM activity, activity_text"); err != nil {
			return err
		}
		return c.runTx(ctx, beginWrite, func() error {
			deletePendingErasures(c, what)
			return nil
		})
	})
	return err == nil, err
}
