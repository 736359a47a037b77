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
	e, err := db.waitOpen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = db.writeTx(t.Context(), func(ctx context.Context, c *pgConn) error {
		e.cancel(errors.New("the connection that listens has ended"))
		_, err := c.exec(ctx, "SELECT 1")
		return err
	})
	if !errors.Is(err, activity.ErrAgain) {
		t.Errorf("the error does not allow repeating the transaction: %v", err)
	}
	if err := db.writeTx(t.Context(), func(ctx context.Context, c *pgConn) error {
		_, err := c.exec(ctx, "SELECT 1")
		return err
	}); err != nil {
		t.Errorf("repeating the transaction failed: %v", err)
	}
}
