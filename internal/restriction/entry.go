package restriction

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"time"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/tool"
)

// subject is what something is decided about. Kind is "" for a tool.
type subject struct{ server, kind, name string }

// kindLaunch is how a server is launched; it has no name.
const kindLaunch = "launch"

func subjectOf(server string, row approval.Row) subject {
	return subject{server, string(row.Kind), row.Tool}
}

func (s subject) row() approval.Row { return approval.Row{Kind: tool.Kind(s.kind), Tool: s.name} }

// entry is what is kept of a subject. The zero value is: nothing.
type entry struct {
	block *approval.Block
	off   *approval.Mark
	was   tool.Fingerprint // that is approved; zero when none is
}

func entryOf(e approval.Entry) entry {
	kept := entry{block: e.Block, off: e.Off}
	switch {
	case e.Pin != nil:
		kept.was = e.Pin.Fingerprint
	case e.Was != nil:
		kept.was = *e.Was
	}
	return kept
}

// entriesOf is what is kept of everything that is decided.
func entriesOf(saved approval.Saved) map[subject]entry {
	all := map[subject]entry{}
	for server, rows := range saved.Tools {
		for _, row := range rows {
			if e := entryOf(row.Entry); !e.equal(entry{}) {
				all[subjectOf(server, row)] = e
			}
		}
	}
	for server, f := range saved.Reviewed {
		all[subject{server, kindLaunch, ""}] = entry{was: f}
	}
	for _, l := range saved.Launches {
		all[subject{l.Server, kindLaunch, ""}] = entry{was: l.Fingerprint}
	}
	return all
}

// narrow is what is decided about a tool by the store and by what is kept here:
// the less of both. When the file is intact, an approval in the store that is not
// the one kept here is an older one, and counts no more.
func (e entry) narrow(stored approval.Entry, intact bool) approval.Entry {
	if e.block != nil && (stored.Block == nil || stored.Block.At.Before(e.block.At)) {
		stored.Block = e.block
	}
	refused := stored.Block != nil && stored.Approves(stored.Block.Fingerprint)
	if refused || intact && !stored.Approves(e.was) {
		stored.Pin = nil
	}
	if stored.Off == nil {
		stored.Off = e.off
	}
	if stored.Pin == nil && e.was != (tool.Fingerprint{}) {
		stored.Was = &e.was
	}
	return stored
}

func (e entry) equal(other entry) bool {
	sameMark := func(a, b *approval.Mark) bool {
		return a == b || a != nil && b != nil && a.By == b.By && a.At.UnixMicro() == b.At.UnixMicro()
	}
	sameBlock := e.block == other.block || e.block != nil && other.block != nil &&
		e.block.Fingerprint == other.block.Fingerprint && sameMark(&e.block.Mark, &other.block.Mark)
	return sameBlock && sameMark(e.off, other.off) && e.was == other.was
}

// line is an entry as it is written. It says all that holds of its subject from
// there on.
type line struct {
	Server string       `json:"server,omitempty"`
	Kind   string       `json:"kind,omitempty"`
	Name   string       `json:"name,omitempty"`
	Block  *writtenMark `json:"block,omitempty"`
	Off    *writtenMark `json:"off,omitempty"`
	Was    string       `json:"was,omitempty"`
	Forget bool         `json:"forget,omitempty"` // everything of the server
	Gaps   bool         `json:"gaps,omitempty"`   // an earlier file was lost in part
}

type writtenMark struct {
	Fingerprint string `json:"fingerprint,omitempty"`
	By          string `json:"by"`
	At          int64  `json:"at"` // microseconds since 1970
}

func written(s subject, e entry) line {
	l := line{Server: s.server, Kind: s.kind, Name: s.name}
	if e.block != nil {
		l.Block = &writtenMark{e.block.Fingerprint.String(), e.block.By, e.block.At.UnixMicro()}
	}
	if e.off != nil {
		l.Off = &writtenMark{By: e.off.By, At: e.off.At.UnixMicro()}
	}
	if e.was != (tool.Fingerprint{}) {
		l.Was = e.was.String()
	}
	return l
}

func (l line) subject() subject { return subject{l.Server, l.Kind, l.Name} }

// entry reads what is written of a subject; ok is false when it is no entry.
func (l line) entry() (e entry, ok bool) {
	mark := func(m *writtenMark) approval.Mark { return approval.Mark{By: m.By, At: time.UnixMicro(m.At)} }
	if l.Block != nil {
		e.block = &approval.Block{Mark: mark(l.Block)}
		if !parseHash(&e.block.Fingerprint, []byte(l.Block.Fingerprint)) {
			return entry{}, false
		}
	}
	if l.Off != nil {
		m := mark(l.Off)
		e.off = &m
	}
	if l.Was != "" && !parseHash(&e.was, []byte(l.Was)) {
		return entry{}, false
	}
	return e, l.Server != "" || l.Gaps
}

// parseHash reads a hash in hexadecimal, of the chain or of a definition.
func parseHash[H ~[sha256.Size]byte](h *H, text []byte) bool {
	n, err := hex.Decode((*h)[:], text[:min(len(text), 2*sha256.Size)])
	return err == nil && n == sha256.Size && len(text) == 2*sha256.Size
}

// apply has entries be what they are after a line.
func apply(entries map[subject]entry, l line, e entry) {
	switch {
	case l.Forget:
		maps.DeleteFunc(entries, func(s subject, _ entry) bool { return s.server == l.Server })
	case l.Server == "":
	case e.equal(entry{}):
		delete(entries, l.subject())
	default:
		entries[l.subject()] = e
	}
}
