package upstream

import (
	"bytes"
	"encoding/json"
	"sync/atomic"

	"mcpproxy/internal/tool"
)

// liveLink is what Ready means.
type liveLink struct {
	link     link
	greeting *greeting
	watched  atomic.Bool                       // of a modern server: what it says of changes is heard
	watching atomic.Int64                      // requests in flight that only listen
	listed   atomic.Pointer[definitions]       // what the server lists now
	own      atomic.Pointer[[]tool.Definition] // what it has listed to us
	others   atomic.Pointer[learnt]            // what it has listed to its clients alone
}

// definitions are the tools of one list as their bytes.
type definitions map[string]json.RawMessage

// modern says whether each request stands for itself.
func (l *liveLink) modern() bool { return l.greeting.version == modernVersion }

// attended says whether what the server says by itself is heard now.
func (l *liveLink) attended() bool { return l.watched.Load() || l.link.attended() }

// busy says whether the server works on something.
func (l *liveLink) busy() bool { return int64(l.link.inFlight()) > l.watching.Load() }

// setListed takes the tools that the server has from now on.
func (l *liveLink) setListed(tools []tool.Definition) {
	defs := make(definitions, len(tools))
	for _, d := range tools {
		defs[d.ID.Tool] = d.Raw
	}
	l.listed.Store(&defs)
}

// stillLists says whether the tool of c is what the caller has judged.
func (l *liveLink) stillLists(c *Call) bool {
	raw, ok := (*l.listed.Load())[c.Tool]
	return ok && bytes.Equal(raw, c.Listed)
}
