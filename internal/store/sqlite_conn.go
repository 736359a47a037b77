package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// sqliteWriteConn is the only connection that writes. It passes prepared statements directly to the driver, because
// database/sql would double their cost.
type sqliteWriteConn struct {
	sqliteReader
	conn  *sql.Conn
	stmts map[string]driver.Stmt // nil after close
	args  []driver.NamedValue
	// txErr is the first error of a statement in the current transaction.
	txErr error
}

// errWriteConnClosed is the error of a writer that got the connection before the database was closed for a check.
var errWriteConnClosed = errors.New("the database was closed while this change waited; try again")

func openWriteConn(ctx context.Context, db *sql.DB) (*sqliteWriteConn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &sqliteWriteConn{conn: c, stmts: map[string]driver.Stmt{}}
	w.sqliteReader = sqliteReader{w}
	return w, nil
}

func (c *sqliteWriteConn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	c.stmts = nil
	return errors.Join(append(errs, c.conn.Close())...)
}

// exec runs a statement. Values are int64, string, bool, []byte or nil.
func (c *sqliteWriteConn) exec(query string, values ...any) error {
	if c.stmts == nil {
		return errWriteConnClosed
	}
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	c.args = c.args[:0]
	for i, v := range values {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	// The background context is intended: for a context that can end, the driver would start a goroutine for each
	// statement. Transactions are short.
	_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), c.args)
	return err
}

func (c *sqliteWriteConn) prepare(query string) (driver.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	var s driver.Stmt
	err := c.conn.Raw(func(dc any) (err error) {
		s, err = dc.(driver.Conn).Prepare(expandForSQLite(query))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	c.stmts[query] = s
	return s, nil
}

// write runs a statement of the transaction. After an error, the transaction fails and runs no further statement.
func (c *sqliteWriteConn) write(query string, values ...any) {
	if c.txErr == nil {
		c.txErr = c.exec(query, values...)
	}
}

// runTx runs fn in a transaction.
func (c *sqliteWriteConn) runTx(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	c.txErr = nil
	err := fn()
	if c.txErr != nil {
		err = c.txErr // later errors are consequences of this one
	}
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil {
		// SQLite may already have ended the transaction.
		_ = c.exec("ROLLBACK")
	}
	return err
}

// QueryRowContext reads one row in the current transaction.
func (c *sqliteWriteConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return c.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// QueryContext reads rows in the current transaction.
func (c *sqliteWriteConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.conn.QueryContext(context.WithoutCancel(ctx), query, args...)
}

// PrepareContext prepares a query in the current transaction.
func (c *sqliteWriteConn) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return c.conn.PrepareContext(context.WithoutCancel(ctx), query)
}

func (*sqliteWriteConn) lockExclusive() {} // not needed, because there is only one writer
func (*sqliteWriteConn) notify(string)  {} // not needed, because there is only one instance

// sqliteReader implements sqlReader.
type sqliteReader struct{ db querier }

func (r sqliteReader) eachRow(ctx context.Context, to scanTargets, fn func() error, query string, values ...any) error {
	return eachRow(ctx, r.db, to, fn, query, values...)
}

func (r sqliteReader) firstRow(ctx context.Context, to scanTargets, query string, values ...any) (bool, error) {
	return firstRow(ctx, r.db, to, query, values...)
}

func (r sqliteReader) ofInstance(int64) sqlReader { return r }

// querier is a connection, a pool or a transaction.
type querier interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// scanTargets contains pointers that receive the columns of a row.
type scanTargets []any

// eachRow runs a query. It calls fn for each row, after it has scanned the row.
func eachRow(ctx context.Context, db querier, to scanTargets, fn func() error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, expandForSQLite(query), args...)
	if err != nil {
		return err
	}
	return scanRows(rows, to, fn)
}

// scanRows calls fn for each row, after it has scanned the row. It closes the rows at the end.
func scanRows(rows *sql.Rows, to scanTargets, fn func() error) error {
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

// firstRow scans the first row of a query and reports whether there is one.
func firstRow(ctx context.Context, db querier, to scanTargets, query string, args ...any) (found bool, err error) {
	err = db.QueryRowContext(ctx, expandForSQLite(query), args...).Scan(to...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
