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
	// pgPingTimeout is the time without a response after which the server counts as unavailable.
	pgPingTimeout = 5 * time.Second
	// pgStatementTimeout limits the duration of one statement.
	pgStatementTimeout = 2 * time.Minute
	pgConnectTimeout   = 3 * time.Second
	// instanceFile is the file in the data directory that contains the name of the instance.
	instanceFile = "instance"
)

// IsPostgres reports whether a database address is for PostgreSQL.
func IsPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// newPgConfig parses a database address and adds default settings. Settings in the address take precedence.
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
		// Every statement has an index. These settings make the server use it, regardless of its statistics.
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off",
		"search_path": pgSchema, "statement_timeout": fmt.Sprint(pgStatementTimeout.Milliseconds()),
		// With this setting, locks of a broken connection do not block the next one.
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

// loadOrCreateInstanceName reads the instance name from a data directory, or creates one.
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
