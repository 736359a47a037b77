//go:build unix

package store

import (
	"context"
	"errors"
	"testing"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/pgtest"
)

// TestPostgresWriteOfAnEndedEngine simulates that another connection detects an unavailable database during a
// transaction. The transaction must fail with an error that allows repeating it, although its own connection still
// works.
func TestPostgresWriteOfAnEndedEngine(t *testing.T) {
	t.Parallel()
	db, err := openPostgres(pgtest.SharedServer(t).CreateDatabase(t), t.TempDir(), nil, Patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	write := func(fn func(context.Context, *pgEngine, *pgConn) error) error { return db.writeTx(t.Context(), fn) }
	err = write(func(ctx context.Context, e *pgEngine, c *pgConn) error {
		e.cancel(errors.New("the connection that listens has ended"))
		_, err := c.exec(ctx, "SELECT 1")
		return err
	})
	if !errors.Is(err, activity.ErrAgain) {
		t.Errorf("the error does not allow repeating the transaction: %v", err)
	}
	if err := write(func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		_, err := c.exec(ctx, "SELECT 1")
		return err
	}); err != nil {
		t.Errorf("repeating the transaction failed: %v", err)
	}
}
