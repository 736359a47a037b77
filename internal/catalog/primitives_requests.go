package catalog

import (
	"sync"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// minRefreshInterval is the shortest time between two lists that clients' answers cause.
const minRefreshInterval = 2 * time.Second

// How long a list is valid for a server that does not announce changes: when all servers
// are listed, and when a primitive is used.
const (
	staleAfter    = 10 * time.Second
	useStaleAfter = time.Minute
)

const (
	// reuseFactor is the time for which a list is valid for uses, as a multiple of its own duration, regardless of
	// announcements. So endless uses keep a server busy with lists for a fifth of the time at most.
	reuseFactor = 4
	// retryAfter is the time until a failed list is requested again, so that a server
	// that hangs does not delay the others each time.
	retryAfter = 30 * time.Second
	// useListTimeout bounds how long a use waits for an unknown list.
	useListTimeout = 30 * time.Second
)

// listRequestLog records when servers' lists were requested. The catalog stores the lists.
type listRequestLog struct {
	mu   sync.Mutex // guards last
	last map[string]*[len(listKinds)]*listRequest
}

type listRequest struct {
	sem chan struct{} // cap 1: held during a request, guards the fields below
	listRequestState
}

type listRequestState struct {
	primitivesVersion uint64 // upstream.State.PrimitivesVersion at the time of the request
	listedAt          time.Time
	duration          time.Duration
	failed            bool // the request failed
	answered          bool // but the server answered
	stale             bool // a client saw a different list since
}

// isRefreshDue reports whether a stale list has to be requested again.
func (l *listRequestState) isRefreshDue() bool {
	return l.stale && !l.failed && time.Since(l.listedAt) > minRefreshInterval
}

// requestOf returns the record of the last request for a server's list; it makes one if there is none.
func (l *listRequestLog) requestOf(s *Snapshot, server string, of ListKind) *listRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last[server] == nil {
		for name := range l.last {
			if s.Server(name) == nil {
				delete(l.last, name)
			}
		}
		if l.last == nil {
			l.last = map[string]*[len(listKinds)]*listRequest{}
		}
		all := new([len(listKinds)]*listRequest)
		for i := range all {
			all[i] = &listRequest{sem: make(chan struct{}, 1)}
		}
		l.last[server] = all
	}
	return l.last[server][of]
}

// isDue reports whether a list has to be requested.
func (l *listRequest) isDue(s *Server, of ListKind, told bool, good time.Duration) bool {
	if told && s.State.Phase != upstream.Ready {
		// The use starts a server that does not run; its list is requested first.
		return good == useStaleAfter
	}
	if l.listedAt.IsZero() || !told && !l.failed || l.primitivesVersion != s.State.PrimitivesVersion || l.isRefreshDue() {
		return true
	}
	if good == useStaleAfter && !l.failed && time.Since(l.listedAt) >= min(reuseFactor*l.duration, useStaleAfter) {
		return true // it may have changed unannounced
	}
	says, _ := wirejson.Bool(wirejson.Find(wirejson.Find(s.State.Capabilities, of.Capability()), "listChanged"))
	if l.failed {
		says, good = false, retryAfter
	}
	return !says && time.Since(l.listedAt) >= good
}
