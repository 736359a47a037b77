package store

import (
	"strconv"
	"strings"
	"sync"
)

// pgChannel is where instances tell each other what they have stored.
const pgChannel = "mcpproxy"

// Shared is what other instances have stored.
type Shared struct {
	All      bool            // the database was away: anything
	Servers  map[string]bool // of which something is decided; true: a launch was approved
	Tokens   bool
	Presence bool     // somebody has signed something, or the anchor is another one
	Asks     bool     // somebody is asked, or has answered, or the leases have changed
	Log      []string // what Steps reads; nil of none
	Missed   bool     // there was more in the logs than what Log tells
}

// maxToldLog is how much Log has.
const maxToldLog = 256

// pgNews collects what others have stored until somebody takes it.
type pgNews struct {
	told chan struct{}
	mu   sync.Mutex // guards what follows
	all  Shared
}

func (n *pgNews) add(s Shared) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all.All, n.all.Tokens, n.all.Missed = n.all.All || s.All, n.all.Tokens || s.Tokens, n.all.Missed || s.Missed || s.All
	n.all.Asks, n.all.Presence = n.all.Asks || s.Asks, n.all.Presence || s.Presence
	if n.all.Log = append(n.all.Log, s.Log...); len(n.all.Log) > maxToldLog {
		n.all.Log, n.all.Missed = nil, true
	}
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
	pgToldLog      = "log " // instance, first key, key after the last, keys that have ended
	pgToldTokens   = "tokens"
	pgToldAsks     = "asks"
	pgToldPresence = "presence"
	pgToldServer   = "server " // true or false, a blank, its name
)

// read takes a notification. One that a later version sends may be about anything.
func (n *pgNews) read(payload string) {
	switch rest, isServer := strings.CutPrefix(payload, pgToldServer); {
	case strings.HasPrefix(payload, pgToldLog):
		n.add(Shared{Log: []string{payload}})
	case payload == pgToldTokens:
		n.add(Shared{Tokens: true})
	case payload == pgToldPresence:
		n.add(Shared{Presence: true})
	case payload == pgToldAsks:
		n.add(Shared{Asks: true})
	case isServer:
		anew, server, _ := strings.Cut(rest, " ")
		n.add(Shared{Servers: map[string]bool{server: anew == strconv.FormatBool(true)}})
	default:
		n.add(Shared{All: true})
	}
}

// maxNotice is how long a notification may be, in bytes; the server's bound is 8,000.
const maxNotice = 7000

// toldLog tells of records that have come, and of those that have ended.
func toldLog(instance, from, next int64, ended []int64) string {
	payload := pgToldLog
	for _, n := range append([]int64{instance, from, next}, ended...) {
		if payload = payload + strconv.FormatInt(n, 10) + " "; len(payload) > maxNotice {
			return pgToldLog
		}
	}
	return payload
}

func toldServer(server string, anew bool) string {
	return pgToldServer + strconv.FormatBool(anew) + " " + server
}
