package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"mcpproxy/internal/ondisk"
)

const (
	// pgPingTimeout is the time without an answer after which the server counts as lost.
	pgPingTimeout = 5 * time.Second
	// pgStatementTimeout limits one statement.
	pgStatementTimeout = 2 * time.Minute
	pgConnectTimeout   = 3 * time.Second
	// instanceFile is the file in the data directory with the name of the instance.
	instanceFile = "instance"
)

// IsPostgres reports whether the address of a database is one of PostgreSQL.
func IsPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// newPgConfig parses the address of a database and adds defaults. A setting in the address wins.
func newPgConfig(address string) (*pgconn.Config, error) {
	if !IsPostgres(address) {
		return nil, errors.New("the address of a database begins with postgres://; such as postgres://mcpproxy@db.example.com/mcpproxy")
	}
	config, err := pgconn.ParseConfig(address)
	if err != nil {
		return nil, errors.New("the address cannot be read; write it as postgres://user:password@host:5432/database?sslmode=verify-full, with special characters of the password as %XX")
	}
	for param, value := range map[string]string{
		"application_name": "mcpproxy",
		// Every statement has an index. The server must use it, regardless of its statistics.
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off",
		"search_path": pgSchema, "statement_timeout": fmt.Sprint(pgStatementTimeout.Milliseconds()),
		// Locks of a broken connection must not block the next one.
		"idle_in_transaction_session_timeout": fmt.Sprint(pgPingTimeout.Milliseconds()),
	} {
		if config.RuntimeParams[param] == "" {
			config.RuntimeParams[param] = value
		}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = pgConnectTimeout
	}
	return config, nil
}

// loadOrCreateInstanceName reads the instance name of a data directory, or creates one.
func loadOrCreateInstanceName(dir string) (string, error) {
	path := filepath.Join(dir, instanceFile)
	text, err := os.ReadFile(path)
	if name := strings.TrimSpace(string(text)); name != "" {
		return name, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	name := rand.Text()[:10]
	return name, ondisk.ReplaceFile(path, []byte(name+"\n"))
}
