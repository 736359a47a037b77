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
	// pgGone is after what time without an answer the server counts as away.
	pgGone = 5 * time.Second
	// pgStatement bounds one statement.
	pgStatement = 2 * time.Minute
	pgConnect   = 3 * time.Second
	// instanceFile is the name of the file in the data directory that says which
	// instance it is.
	instanceFile = "instance"
)

// IsPostgres reports whether a database is one of PostgreSQL, by its address.
func IsPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// pgConfig returns how the database at an address is connected to. What the address says
// itself counts.
func pgConfig(address string) (*pgconn.Config, error) {
	if !IsPostgres(address) {
		return nil, errors.New("the address of a database begins with postgres://; such as postgres://mcpproxy@db.example.com/mcpproxy")
	}
	config, err := pgconn.ParseConfig(address)
	if err != nil {
		return nil, errors.New("the address cannot be read; write it as postgres://user:password@host:5432/database?sslmode=verify-full, with special characters of the password as %XX")
	}
	for param, value := range map[string]string{
		"application_name": "mcpproxy",
		// Every statement has its index, whatever the server knows of how much there is.
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off",
		"search_path": pgSchema, "statement_timeout": fmt.Sprint(pgStatement.Milliseconds()),
		// What a connection that was cut off holds must not hold up the next one.
		"idle_in_transaction_session_timeout": fmt.Sprint(pgGone.Milliseconds()),
	} {
		if config.RuntimeParams[param] == "" {
			config.RuntimeParams[param] = value
		}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = pgConnect
	}
	return config, nil
}

// instanceName reads which instance a data directory has, and makes one up where there is
// none.
func instanceName(dir string) (string, error) {
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
