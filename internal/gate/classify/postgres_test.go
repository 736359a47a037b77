//go:build unix

package classify

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/testutil/pgtest"
)

// TestReadOnlyPostgres runs the plain reads, which are classified as reads, in a read-only transaction of a real
// PostgreSQL. PostgreSQL must refuse none of them because of an effect. To check the test itself, it also runs texts
// with effects, of which PostgreSQL must refuse some.
func TestReadOnlyPostgres(t *testing.T) {
	address := pgtest.StartServer(t).CreateDatabase(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgconn.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	run := func(statement string) *pgconn.PgError {
		_, err := conn.Exec(ctx, statement).ReadAll()
		var refused *pgconn.PgError
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("%s: %v", statement, err)
		}
		return refused
	}
	if refused := run("CREATE TABLE t (a int, b text, c int); CREATE TABLE users (id int, email text, created_at timestamptz); CREATE SEQUENCE s; SET statement_timeout = '500ms'"); refused != nil {
		t.Fatal(refused)
	}
	ran, refusals := 0, 0
	try := func(statement string) {
		read := classifySQL(statement).Operation == policy.Read
		if refused := run("BEGIN READ ONLY"); refused != nil {
			t.Fatal(refused)
		}
		refused := run(statement)
		run("ROLLBACK")
		switch readOnly := refused != nil && refused.Code == "25006"; {
		case readOnly && read:
			t.Errorf("%q is classified as a read: %s", statement, refused.Message)
		case readOnly:
			refusals++
		case refused == nil && read:
			ran++
		}
	}
	for _, database := range corpus(t, "reads.txt") {
		for _, line := range database.Lines {
			try(strings.ReplaceAll(line, `\n`, "\n"))
		}
	}
	effects := corpus(t, "effects.txt")
	for _, head := range []string{"write", "destructive"} {
		for _, line := range effects.SectionByHead(head).Lines {
			if !leavesTransaction(line) {
				try(unescape.Replace(line))
			}
		}
	}
	calls := effects.SectionByHead("calls").Lines
	calls = calls[:slices.Index(calls, "sys_exec('rm -rf /')")] // functions of PostgreSQL
	places, rnd := []string{"SELECT $", "SELECT * FROM $ x", "WITH x AS (SELECT $) SELECT * FROM x", "SELECT a FROM t WHERE EXISTS (SELECT $)", "SELECT 'it''s', $", "SELECT E'\\'', $", "SELECT /* a /* b */ */ $"}, rand.New(rand.NewPCG(29, 2))
	for _, call := range calls {
		if strings.HasPrefix(call, "pg_") && !strings.HasPrefix(call, "pg_read") && !strings.HasPrefix(call, "pg_stat") {
			continue // affects the whole server
		}
		for _, name := range names(call) {
			place := places[rnd.IntN(len(places))]
			i := strings.LastIndex(place, "$")
			try(place[:i] + name + place[i+1:])
		}
	}
	t.Logf("%d statements that are classified as reads were run, %d of the others were refused as writes", ran, refusals)
	if ran < 30 || refusals < 50 {
		t.Error("too few statements for a result")
	}
}

// leavesTransaction reports whether a statement would end the read-only transaction.
func leavesTransaction(statement string) bool {
	s := strings.ToUpper(statement)
	for _, word := range []string{"COMMIT", "ROLLBACK", "BEGIN", "START", "COPY", "PREPARE TRANSACTION", "SHUTDOWN", "SET SESSION", "SET ROLE"} {
		if strings.Contains(s, word) {
			return true
		}
	}
	return false
}
