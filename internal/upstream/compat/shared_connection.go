package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// sharedClient is one of the clients that share MCPProxy's own connection to a server, so that the server runs once. The server
// sees one session; each client gets the server's result of MCPProxy's initialize.
//
// Each request gets a new id and progress token. Messages are never routed by guess. Progress goes to the request with the
// token, and a change to the clients that it concerns. A log message goes to the request in whose stream it came, or to the
// only one in flight. With Spec.Auto, MCPProxy's initialize declares capabilities for the server's questions; package transport
// finds the request that a question is about, and otherwise refuses it. Tasks are not supported: their list would show each client the tasks of the others.
//
// It outlives the connection, unless the server returns with a different handshake result.
type sharedClient struct {
	*session.EndSignal
	sharing   *sharedConnection
	owner     session.ClientRef
	inbox     session.EventQueue
	handshake *upstream.HandshakeResult // the handshake result for the client; set by initialize

	requests struct {
		sync.Mutex                   // guards the fields below
		inFlight                     int
		mayMoveToOwnSession, leaving bool
	}
	questions sharedQuestions

	level string                // wanted log level, "" if unset; guarded by sharedConnection.mu
	uris  resourceSubscriptions // guarded by sharedConnection.mu
}

var errServerChanged = problem.TrustedTextErrorf("the server has returned with another protocol version, other capabilities or other instructions")

// sharedConnection has the clients that share MCPProxy's own connection to a server. It synchronizes the server with their
// subscriptions and log levels, also after a reconnect.
type sharedConnection struct {
	sv   *upstream.Server
	sem  chan struct{}         // cap 1: held while settings are sent
	sent levelAndSubscriptions // guarded by sem
	wg   sync.WaitGroup        // of goroutines that send settings

	mu       sync.Mutex // guards the fields below, and level and uris of each client
	clients  map[*sharedClient]struct{}
	on       *upstream.Connection // the last connection
	outdated bool                 // the clients may want other settings than the server has
	syncing  bool                 // a goroutine is sending settings
}

// levelAndSubscriptions are the log level and the resource subscriptions that a server got on one connection.
type levelAndSubscriptions struct {
	on    *upstream.Connection
	level string
	uris  resourceSubscriptions
}

func newSharedConnection(sv *upstream.Server) *sharedConnection {
	return &sharedConnection{sv: sv, sem: make(chan struct{}, 1), clients: map[*sharedClient]struct{}{}}
}

// lockSettings waits for the exclusive right to send settings on c.
func (sh *sharedConnection) lockSettings(ctx context.Context, c *upstream.Connection) error {
	select {
	case sh.sem <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	sh.mu.Lock()
	now := sh.on
	sh.mu.Unlock()
	if now != c {
		sh.unlockSettings()
		return &session.NotSentError{Cause: transport.ErrStopped}
	}
	if sh.sent.on != c {
		sh.sent = levelAndSubscriptions{on: c, uris: resourceSubscriptions{}}
	}
	return nil
}

func (sh *sharedConnection) unlockSettings() { <-sh.sem }

// connection returns the last connection, or nil.
func (sh *sharedConnection) connection() *upstream.Connection {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.on
}

// addClient adds l to the clients, unless it has ended since then or the server's handshake
// result may have changed.
func (sh *sharedConnection) addClient(l *sharedClient, c *upstream.Connection) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.on != c || l.Cause() != nil {
		return false
	}
	sh.clients[l] = struct{}{}
	return true
}

func (sh *sharedConnection) removeClient(l *sharedClient) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	delete(sh.clients, l)
	sh.startSettingsSync()
}

// hasSubscriptions reports whether any client has a resource subscription.
func (sh *sharedConnection) hasSubscriptions() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for l := range sh.clients {
		if len(l.uris) > 0 {
			return true
		}
	}
	return false
}

// wantedLevelAndSubscriptions returns the settings for the server: the most verbose level of the clients ("" if no
// client set one), and all subscriptions.
func (sh *sharedConnection) wantedLevelAndSubscriptions() (level string, all resourceSubscriptions) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all = resourceSubscriptions{}
	for l := range sh.clients {
		level = moreVerboseLevel(level, l.level)
		maps.Copy(all, l.uris)
	}
	return level, all
}

// deliverToClients delivers a notification that belongs to no request to the clients it
// concerns: a changed list, or a changed resource. It reports whether there are any.
func (sh *sharedConnection) deliverToClients(method string, params json.RawMessage) bool {
	uri := ""
	if method == mcp.ResourceUpdated {
		uri, _ = wirejson.String(wirejson.Find(params, "uri"))
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.clients) == 0 {
		return false
	}
	e := session.Event{Method: method, Params: bytes.Clone(params)} // one copy for all clients without a stream
	for l := range sh.clients {
		if method != mcp.ResourceUpdated || l.isSubscribed(uri) {
			l.inbox.Put(e)
		}
	}
	return true
}

// moveClientsToConnection moves the clients to a new connection, before it delivers anything. Lists may
// have changed since then. Clients with a different handshake result end.
func (sh *sharedConnection) moveClientsToConnection(c *upstream.Connection) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	same := sh.on != nil && sh.on.HasSameTools(c)
	sh.on = c
	for l := range sh.clients {
		if !l.handshake.HasSameCapabilities(c.HandshakeResult()) {
			delete(sh.clients, l)
			l.Signal(errServerChanged)
			continue
		}
		for _, list := range listNotifications {
			if c.HandshakeResult().AnnouncesChanges(list.kind) && !(same && list.method == mcp.ToolsChanged) {
				l.inbox.Put(session.Event{Method: list.method})
			}
		}
	}
	if len(sh.clients) > 0 {
		sh.startSettingsSync()
	}
}

// startSettingsSync starts the synchronization of settings. The lock is held.
func (sh *sharedConnection) startSettingsSync() {
	sh.outdated = true
	if sh.syncing || sh.on == nil || sh.on.Cause() != nil { // the next connection gets all settings anyway
		return
	}
	sh.syncing = true
	sh.wg.Go(func() {
		for c := sh.connectionToSync(); c != nil; c = sh.connectionToSync() {
			sh.syncLevelAndSubscriptions(c)
		}
	})
}

// markSettingsUnknown records that the server's settings are unknown.
func (sh *sharedConnection) markSettingsUnknown() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.startSettingsSync()
}

// connectionToSync returns the connection that needs a synchronization, or nil.
func (sh *sharedConnection) connectionToSync() *upstream.Connection {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.syncing = sh.outdated && sh.on.Cause() == nil
	if !sh.syncing {
		return nil
	}
	sh.outdated = false
	return sh.on
}

// syncTimeout bounds one request for a setting.
const syncTimeout = 10 * time.Second

// syncLevelAndSubscriptions sends the difference between the wanted settings and those that the server has.
// Clients with subscriptions from an earlier connection are notified that the resource
// may have changed.
func (sh *sharedConnection) syncLevelAndSubscriptions(c *upstream.Connection) {
	if sh.lockSettings(context.Background(), c) != nil {
		return
	}
	defer sh.unlockSettings()
	level, uris := sh.wantedLevelAndSubscriptions()
	tell := func(method string, params json.RawMessage) bool {
		ctx, cancel := context.WithTimeout(context.Background(), syncTimeout)
		defer cancel()
		_, err := sh.sv.SendOwnRequest(ctx, c, method, params)
		return err == nil
	}
	for _, uri := range slices.Sorted(maps.Keys(sh.sent.uris)) {
		if !uris[uri] && c.Cause() == nil {
			tell(mcp.Unsubscribe, resourceParams(uri))
			delete(sh.sent.uris, uri)
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(uris)) {
		if !sh.sent.uris[uri] && c.Cause() == nil && tell(mcp.Subscribe, resourceParams(uri)) {
			sh.sent.uris[uri] = true
			sh.deliverToClients(mcp.ResourceUpdated, resourceParams(uri))
		}
	}
	if level != "" && level != sh.sent.level && c.Cause() == nil && tell(mcp.SetLevel, newJSONObject(jsonField{"level", encodeJSONString(level)})) {
		sh.sent.level = level
	}
}

// moreVerboseLevel returns the more verbose of two log levels. "" means no level.
func moreVerboseLevel(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || mcp.LogLevelRank(a) < mcp.LogLevelRank(b):
		return a
	}
	return b
}

// isSubscribed reports whether the client is subscribed to the resource or to one that
// contains it. The lock of sharedConnection is held.
func (l *sharedClient) isSubscribed(uri string) bool {
	if l.uris[uri] {
		return true
	}
	for whole := range l.uris {
		if strings.HasPrefix(uri, strings.TrimSuffix(whole, "/")+"/") {
			return true
		}
	}
	return false
}
