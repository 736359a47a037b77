package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"time"

	"mcpproxy/internal/catalog/tool"
)

// subject is the object of a decision. Kind is "" for a tool.
type subject struct {
	Server string `json:"server,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
}

// kindLaunch is the launch of a server; it has no name.
const kindLaunch = "launch"

func subjectOf(server string, row Row) subject {
	return subject{server, string(row.Kind), row.Tool}
}

func (s subject) row() Row { return Row{Kind: tool.DefinitionKind(s.Kind), Tool: s.Name} }

// entry is the file form of an Entry. The zero value is "none".
type entry struct {
	Block block  `json:"block,omitzero"`
	Off   mark   `json:"off,omitzero"`
	Was   digest `json:"was,omitzero"` // approved fingerprint
}

type block struct {
	Fingerprint digest `json:"fingerprint"`
	mark
}

type mark struct {
	By string `json:"by"`
	At int64  `json:"at"` // microseconds since 1970
}

func markOf(m Mark) mark { return mark{m.By, m.At.UnixMicro()} }

func (m mark) approval() Mark { return Mark{By: m.By, At: time.UnixMicro(m.At)} }

// digest is a SHA-256: a fingerprint or a hash of the chain.
type digest [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler.
func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *digest) UnmarshalText(text []byte) error {
	if len(text) != 2*len(d) {
		return fmt.Errorf("a digest has %d digits", len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

func entryOf(e Entry) entry {
	var kept entry
	if e.Block != nil {
		kept.Block = block{digest(e.Block.Fingerprint), markOf(e.Block.Mark)}
	}
	if e.Off != nil {
		kept.Off = markOf(*e.Off)
	}
	switch {
	case e.Pin != nil:
		kept.Was = digest(e.Pin.Fingerprint)
	case e.Was != nil:
		kept.Was = digest(*e.Was)
	}
	return kept
}

// entries are the decisions by subject. Most have only an approved fingerprint, which is stored separately
// because an entry takes four times the memory.
type entries struct {
	was  map[subject]digest
	more map[subject]entry // subjects with other decisions
}

func newEntries(n int) entries {
	return entries{was: make(map[subject]digest, n), more: map[subject]entry{}}
}

func (a entries) of(s subject) entry {
	if e, there := a.more[s]; there {
		return e
	}
	return entry{Was: a.was[s]}
}

// set sets the entry of s; the zero value removes it.
func (a entries) set(s subject, e entry) {
	delete(a.was, s)
	delete(a.more, s)
	switch {
	case e != entry{Was: e.Was}:
		a.more[s] = e
	case e.Was != (digest{}):
		a.was[s] = e.Was
	}
}

func (a entries) len() int { return len(a.was) + len(a.more) }

func (a entries) all() iter.Seq2[subject, entry] {
	return func(yield func(subject, entry) bool) {
		for s, was := range a.was {
			if !yield(s, entry{Was: was}) {
				return
			}
		}
		for s, e := range a.more {
			if !yield(s, e) {
				return
			}
		}
	}
}

func (a entries) equal(b entries) bool { return maps.Equal(a.was, b.was) && maps.Equal(a.more, b.more) }

// entriesOf converts stored decisions.
func entriesOf(saved Saved) entries {
	n := len(saved.Reviewed) + len(saved.Launches)
	for _, rows := range saved.Tools {
		n += len(rows)
	}
	all := newEntries(n)
	for server, rows := range saved.Tools {
		for _, row := range rows {
			all.set(subjectOf(server, row), entryOf(row.Entry))
		}
	}
	for server, f := range saved.Reviewed {
		all.set(subject{server, kindLaunch, ""}, entry{Was: digest(f)})
	}
	for _, l := range saved.Launches {
		all.set(subject{l.Server, kindLaunch, ""}, entry{Was: digest(l.Fingerprint)})
	}
	return all
}

// restrict combines the entry of the store with that of the file, keeping the restrictions of both. If the
// file is complete, a different approval in the store is outdated and does not count.
func (e entry) restrict(stored Entry, intact bool) Entry {
	was, blocked := tool.Fingerprint(e.Was), e.Block.approval()
	if e.Block != (block{}) && (stored.Block == nil || stored.Block.At.Before(blocked.At)) {
		stored.Block = &Block{Fingerprint: tool.Fingerprint(e.Block.Fingerprint), Mark: blocked}
	}
	refused := stored.Block != nil && stored.Pin != nil && stored.Block.Overrides(stored.Pin)
	if refused || intact && !stored.Approves(was) {
		stored.Pin = nil
	}
	if stored.Off == nil && e.Off != (mark{}) {
		off := e.Off.approval()
		stored.Off = &off
	}
	if stored.Pin == nil && was != (tool.Fingerprint{}) {
		stored.Was = &was
	}
	return stored
}

// line is a line of the file: the complete new entry of its subject.
type line struct {
	subject
	entry
	Forget bool `json:"forget,omitempty"` // everything of the server
	Gaps   bool `json:"gaps,omitempty"`   // an earlier file was partially lost
}

// valid reports whether a parsed line is meaningful.
func (l line) valid() bool {
	complete := l.Block == (block{}) || l.Block.Fingerprint != (digest{}) || l.Block.mark != (mark{}) // of an approval that was taken back
	return complete && (l.Server != "" || l.Gaps)
}

// apply applies a line to entries.
func (a entries) apply(l line) {
	switch {
	case l.Forget:
		maps.DeleteFunc(a.was, func(s subject, _ digest) bool { return s.Server == l.Server })
		maps.DeleteFunc(a.more, func(s subject, _ entry) bool { return s.Server == l.Server })
	case l.Server != "":
		a.set(l.subject, l.entry)
	}
}
