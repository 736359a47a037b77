package store

import (
	"context"
	"strconv"
	"strings"
	"sync"
)

// pgChannel is where instances tell each other what they have stored.
const pgChannel = "mcpproxy"

// Shared is what other instances have stored.
type Shared struct {
	All     bool            // the database was away: anything
	Servers map[string]bool // of which something is decided; true: a launch was approved
	Tokens  bool
	Log     bool // records
}

// pgNews collects what others have stored until somebody takes it.
type pgNews struct {
	told chan struct{}
	mu   sync.Mutex // guards what follows
	all  Shared
}

func (n *pgNews) add(s Shared) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all.All, n.all.Tokens, n.all.Log = n.all.All || s.All, n.all.Tokens || s.Tokens, n.all.Log || s.Log
	for server, anew := range s.Servers {
		if n.all.Servers == nil {
			n.all.Servers = map[string]bool{}
		}
		n.all.Servers[server] = n.all.Servers[server] || anew
	}
	select {
	case n.told <- struct{}{}:
	default:
	}
}

// The payloads of notifications.
const (
	pgToldLog    = "log"
	pgToldTokens = "tokens"
	pgToldServer = "server " // true or false, a blank, its name
)

// read takes a notification. One that a later version sends may be about anything.
func (n *pgNews) read(payload string) {
	switch rest, isServer := strings.CutPrefix(payload, pgToldServer); {
	case payload == pgToldLog:
		n.add(Shared{Log: true})
	case payload == pgToldTokens:
		n.add(Shared{Tokens: true})
	case isServer:
		anew, server, _ := strings.Cut(rest, " ")
		n.add(Shared{Servers: map[string]bool{server: anew == strconv.FormatBool(true)}})
	default:
		n.add(Shared{All: true})
	}
}

// tell has the other instances told when the transaction has ended.
func tell(ctx context.Context, c *pgConn, payload string) error {
	_, err := c.exec(ctx, "SELECT pg_notify($1, $2)", pgChannel, payload)
	return err
}

func toldServer(server string, anew bool) string {
	return pgToldServer + strconv.FormatBool(anew) + " " + server
}
