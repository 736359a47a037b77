package catalog

import (
	"sync"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// minRefreshInterval is the shortest time between two list requests that clients' answers cause.
const minRefreshInterval = 2 * time.Second

// The maximum age of a list of a server that does not announce changes: when all servers are listed, and when a
// primitive is used.
const (
	staleAfter    = 10 * time.Second
	useStaleAfter = time.Minute
)

const (
	// reuseFactor times the duration of the last list request is how long a list is valid for uses, regardless of
	// announcements. So uses without a pause keep a server busy with list requests for at most a fifth of the time.
	reuseFactor = 4
	// retryAfter is the time until a failed list is requested again, so that a server that does not respond does not
	// delay the others each time.
	retryAfter = 30 * time.Second
	// useListTimeout is the time limit for a use that waits for an unknown list.
	useListTimeout = 30 * time.Second
)

// listRequestLog records when servers' lists were requested. The catalog stores the lists.
type listRequestLog struct {
	mu   sync.Mutex // guards last
	last map[string]*[len(listKinds)]*listRequest
}

type listRequest struct {
	sem chan struct{} // capacity 1: held during a request, guards the fields below
	listRequestState
}

type listRequestState struct {
	primitivesVersion uint64 // upstream.State.PrimitivesVersion at the time of the request
	listedAt          time.Time
	duration          time.Duration
	failed            bool // the request failed
	answered          bool // the server answered the failed request
	stale             bool // a client saw a different list since
}

// isRefreshDue reports whether a stale list has to be requested again.
func (l *listRequestState) isRefreshDue() bool {
	return l.stale && !l.failed && time.Since(l.listedAt) > minRefreshInterval
}

// requestOf returns the record of the last request for a server's list. It creates one if there is none.
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

// isDue reports whether a list has to be requested. listed reports whether the catalog has the list, and maxAge is the
// accepted age for servers that do not announce changes.
func (l *listRequest) isDue(s *Server, kind ListKind, listed bool, maxAge time.Duration) bool {
	if listed && s.State.Phase != upstream.Ready {
		// The use starts the server if it is not running, and its list is requested first.
		return maxAge == useStaleAfter
	}
	if l.listedAt.IsZero() || !listed && !l.failed || l.primitivesVersion != s.State.PrimitivesVersion || l.isRefreshDue() {
		return true
	}
	if maxAge == useStaleAfter && !l.failed && time.Since(l.listedAt) >= min(reuseFactor*l.duration, useStaleAfter) {
		return true // the list may have changed without an announcement
	}
	announces, _ := wirejson.Bool(wirejson.Find(wirejson.Find(s.State.Capabilities, kind.Capability()), "listChanged"))
	if l.failed {
		announces, maxAge = false, retryAfter
	}
	return !announces && time.Since(l.listedAt) >= maxAge
}
