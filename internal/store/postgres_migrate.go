package store

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// pgSchema is the schema of the tables, unless the address specifies another one.
const pgSchema = "mcpproxy"

// pgMigrationLock is the advisory lock that prevents several instances from migrating at the same time.
const pgMigrationLock = int64(0x4d435058)

// migratePostgres updates the tables to the newest version, in a single transaction.
func migratePostgres(ctx context.Context, c *pgConn, schema string) error {
	return c.runTx(ctx, beginWrite, func() error {
		if _, err := c.exec(ctx, "SELECT pg_advisory_xact_lock($1)", pgMigrationLock); err != nil {
			return err
		}
		if schema == pgSchema {
			var there bool
			if _, err := c.firstRow(ctx, scanTargets{&there}, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", pgSchema); err != nil {
				return err
			}
			if !there {
				if err := c.execScript(ctx, "CREATE SCHEMA "+pgSchema); err != nil {
					return fmt.Errorf("create the schema %s: %w", pgSchema, err)
				}
			}
		}
		if err := c.execScript(ctx, "SET LOCAL client_min_messages = warning; CREATE TABLE IF NOT EXISTS migration (version bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"); err != nil {
			return err
		}
		return applyPgMigrations(ctx, c)
	})
}

func applyPgMigrations(ctx context.Context, c *pgConn) error {
	var have int64
	if _, err := c.firstRow(ctx, scanTargets{&have}, "SELECT coalesce(max(version), 0) FROM migration"); err != nil {
		return err
	}
	steps, err := fs.ReadDir(migrationFiles, "migrations/postgres")
	if err != nil {
		return err
	}
	newest := int64(0)
	for _, step := range steps {
		number, _, _ := strings.Cut(step.Name(), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return err
		}
		if newest = version; version <= have {
			continue
		}
		text, err := fs.ReadFile(migrationFiles, "migrations/postgres/"+step.Name())
		if err != nil {
			return err
		}
		if err := c.execScript(ctx, string(text)); err != nil {
			return fmt.Errorf("bring the database up to date with %s: %w", step.Name(), err)
		}
		if _, err := c.exec(ctx, "INSERT INTO migration (version) VALUES ($1)", version); err != nil {
			return err
		}
	}
	if have > newest {
		return fmt.Errorf("the database has version %d, this program supports up to %d: use the newer MCPProxy that wrote it", have, newest)
	}
	return nil
}
