package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// rawConn is the one connection that writes. The statements of the projection
// go to the driver itself, prepared once: database/sql would cost as much again
// as SQLite does.
type rawConn struct {
	conn  *sql.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
	// failed is why a statement of the transaction that is under way has failed.
	failed error
}

func openRaw(ctx context.Context, db *sql.DB) (*rawConn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &rawConn{conn: c, stmts: map[string]driver.Stmt{}}, nil
}

func (c *rawConn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// exec runs a statement. Values are int64, string, []byte or nil.
func (c *rawConn) exec(query string, values ...driver.Value) error {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	c.args = c.args[:0]
	for i, v := range values {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	// The background context is on purpose: the driver starts a goroutine for
	// each statement with one that can end. Transactions are short.
	_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), c.args)
	return err
}

func (c *rawConn) prepare(query string) (driver.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	var s driver.Stmt
	err := c.conn.Raw(func(dc any) (err error) {
		s, err = dc.(driver.Conn).Prepare(query)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	c.stmts[query] = s
	return s, nil
}

// do runs a statement of a transaction. Its error is that of the transaction, of
// which nothing more is run then.
func (c *rawConn) do(query string, values ...driver.Value) {
	if c.failed == nil {
		c.failed = c.exec(query, values...)
	}
}

// tx runs fn in a transaction.
func (c *rawConn) tx(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	c.failed = nil
	err := fn()
	if c.failed != nil {
		err = c.failed // what came after it, came of it
	}
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil {
		// An error of SQLite may have ended the transaction already.
		_ = c.exec("ROLLBACK")
	}
	return err
}

// QueryRowContext reads one row inside a transaction.
func (c *rawConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return c.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// QueryContext is QueryRowContext for more than one.
func (c *rawConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.conn.QueryContext(context.WithoutCancel(ctx), query, args...)
}

// querier is a connection, a pool of them or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// into is where the columns of a row are read into.
type into []any

// each reads what a query selects, row by row, and calls fn after each.
func each(ctx context.Context, db querier, to into, fn func() error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if err := fn(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// first reads the first row that a query selects, and reports whether there is one.
func first(ctx context.Context, db querier, to into, query string, args ...any) (found bool, err error) {
	err = db.QueryRowContext(ctx, query, args...).Scan(to...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
