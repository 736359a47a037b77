package store

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// pgSchema is where the tables are, unless the address says another one.
const pgSchema = "mcpproxy"

// pgLock is the number of the advisory lock under which one instance migrates at a time.
const pgLock = int64(0x4d435058)

// pgMigrate brings the tables up to date, all steps in one transaction.
func pgMigrate(ctx context.Context, c *pgConn, schema string) error {
	return c.tx(ctx, beginWrite, func() error {
		if _, err := c.exec(ctx, "SELECT pg_advisory_xact_lock($1)", pgLock); err != nil {
			return err
		}
		if schema == pgSchema {
			var there bool
			if _, err := c.first(ctx, into{&there}, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", pgSchema); err != nil {
				return err
			}
			if !there {
				if err := c.run(ctx, "CREATE SCHEMA "+pgSchema); err != nil {
					return fmt.Errorf("make the schema %s: %w", pgSchema, err)
				}
			}
		}
		if err := c.run(ctx, "SET LOCAL client_min_messages = warning; CREATE TABLE IF NOT EXISTS migration (version bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"); err != nil {
			return err
		}
		return pgSteps(ctx, c)
	})
}

func pgSteps(ctx context.Context, c *pgConn) error {
	var have int64
	if _, err := c.first(ctx, into{&have}, "SELECT coalesce(max(version), 0) FROM migration"); err != nil {
		return err
	}
	steps, err := fs.ReadDir(migrations, "migrations/postgres")
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
		text, err := fs.ReadFile(migrations, "migrations/postgres/"+step.Name())
		if err != nil {
			return err
		}
		if err := c.run(ctx, string(text)); err != nil {
			return fmt.Errorf("bring the database up to date with %s: %w", step.Name(), err)
		}
		if _, err := c.exec(ctx, "INSERT INTO migration (version) VALUES ($1)", version); err != nil {
			return err
		}
	}
	if have > newest {
		return fmt.Errorf("the database has version %d, this program knows up to %d: use the newer MCPProxy that wrote it", have, newest)
	}
	return nil
}
