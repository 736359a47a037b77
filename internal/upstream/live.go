package upstream

import (
	"bytes"
	"encoding/json"
	"sync/atomic"

	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/session"
	"mcpproxy/internal/tool"
)

// liveLink is what Ready means.
type liveLink struct {
	link     link.Link
	greeting *greeting
	leaving  atomic.Bool                       // it is going to be ended: nothing new goes there
	watched  atomic.Bool                       // of a modern server: what it says of changes is heard
	watching atomic.Int64                      // requests in flight that only listen
	listed   atomic.Pointer[definitions]       // what the server lists now
	upTo     atomic.Uint64                     // the last announced change that is on that list
	own      atomic.Pointer[[]tool.Definition] // what it has listed to us
	others   atomic.Pointer[learnt]            // what it has listed to its clients alone
}

// definitions are the tools of one list as their bytes.
type definitions map[string]json.RawMessage

// usable reports whether calls may go there. A nil link is not usable.
func (l *liveLink) usable() bool { return l != nil && !l.leaving.Load() && l.link.Cause() == nil }

// listens takes note, until done, of a request that waits for what happens.
func (l *liveLink) listens(method string) (done func()) {
	if method != mcp.Listen {
		return func() {}
	}
	l.watching.Add(1)
	return func() { l.watching.Add(-1) }
}

// modern says whether each request stands for itself.
func (l *liveLink) modern() bool { return l.greeting.version == mcp.Modern }

// attended says whether what the server says by itself is heard now.
func (l *liveLink) attended() bool { return l.watched.Load() || l.link.Health().Listening }

// busy says whether the server works on something.
func (l *liveLink) busy() bool { return int64(l.link.Health().InFlight) > l.watching.Load() }

// setListed takes the tools that the server has from now on.
func (l *liveLink) setListed(tools []tool.Definition) {
	defs := make(definitions, len(tools))
	for _, d := range tools {
		defs[d.ID.Tool] = d.Raw
	}
	l.listed.Store(&defs)
}

// stillLists reports whether the tool of a call is what the caller has judged.
func (l *liveLink) stillLists(r *session.Request) bool {
	judged := r.Judged.Listed()
	if judged == nil { // that does not matter
		return true
	}
	raw, ok := (*l.listed.Load())[r.Judged.Tool()]
	return ok && bytes.Equal(raw, judged)
}
