package catalog

import (
	"sync"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// doubtPause is the shortest time between two lists that clients bring about by
// what they are shown.
const doubtPause = 2 * time.Second

// How long a list is good for of a server that does not say when it changes:
// when all servers are listed, and when something of one is used.
const (
	staleAfter    = 10 * time.Second
	staleUseAfter = time.Minute
)

const (
	// usePause is how many times as long as a list takes it is good for when something on it is
	// used, whatever the server says of changes. So uses without end keep the server at work on
	// lists for a fifth of the time at most.
	usePause = 4
	// lostAfter is when a list is asked for again that could not be had: a server
	// that hangs must not hold up the others each time.
	lostAfter = 30 * time.Second
	// useListTime bounds how long a use waits for a list that is not known.
	useListTime = 30 * time.Second
)

// listings remember when the lists of servers were asked for. What they say the
// catalog keeps.
type listings struct {
	mu   sync.Mutex // guards last
	last map[string]*[len(lists)]*listing
}

type listing struct {
	turn chan struct{} // cap 1: held by who asks, and guards what follows
	listingState
}

type listingState struct {
	state    uint64 // upstream.State.Offers when it was asked for
	at       time.Time
	took     time.Duration
	lost     bool // it could not be had then
	answered bool // but the server has said something
	doubted  bool // a client was shown another one since
}

// again reports whether a list is to be asked for again because it was doubted.
func (l *listingState) again() bool { return l.doubted && !l.lost && time.Since(l.at) > doubtPause }

// of returns the listing of a server's offers of a kind.
func (l *listings) of(s *Snapshot, server string, of PrimitiveList) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last[server] == nil {
		for name := range l.last {
			if s.Server(name) == nil {
				delete(l.last, name)
			}
		}
		if l.last == nil {
			l.last = map[string]*[len(lists)]*listing{}
		}
		all := new([len(lists)]*listing)
		for i := range all {
			all[i] = &listing{turn: make(chan struct{}, 1)}
		}
		l.last[server] = all
	}
	return l.last[server][of]
}

// due reports whether a list is to be asked for.
func (l *listing) due(s *Server, of PrimitiveList, told bool, good time.Duration) bool {
	if told && s.State.Phase != upstream.Ready {
		// One that does not run is started by its use, and what it lists then comes first.
		return good == staleUseAfter
	}
	if l.at.IsZero() || !told && !l.lost || l.state != s.State.Offers || l.again() {
		return true
	}
	if good == staleUseAfter && !l.lost && time.Since(l.at) >= min(usePause*l.took, staleUseAfter) {
		return true // it may have changed without a word
	}
	says, _ := wirejson.Bool(wirejson.Find(wirejson.Find(s.State.Capabilities, of.Capability()), "listChanged"))
	if l.lost {
		says, good = false, lostAfter
	}
	return !says && time.Since(l.at) >= good
}
