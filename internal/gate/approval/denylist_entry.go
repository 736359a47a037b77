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

// subject is what something is decided about. Kind is "" for a tool.
type subject struct {
	Server string `json:"server,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
}

// kindLaunch is how a server is launched; it has no name.
const kindLaunch = "launch"

func subjectOf(server string, row Row) subject {
	return subject{server, string(row.Kind), row.Tool}
}

func (s subject) row() Row { return Row{Kind: tool.Kind(s.Kind), Tool: s.Name} }

// entry is what is kept of a subject, as it is written. The zero value is:
// nothing.
type entry struct {
	Block block  `json:"block,omitzero"`
	Off   mark   `json:"off,omitzero"`
	Was   digest `json:"was,omitzero"` // the fingerprint that is approved
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

// digest is a SHA-256: a fingerprint, or one link of the chain.
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

// entries are what is kept, by subject. Of nearly all it is what was approved alone,
// which is apart: an entry takes four times the memory.
type entries struct {
	was  map[subject]digest
	more map[subject]entry // what has something else, too
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

// set has e be what is kept of s; the zero value is nothing.
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

// entriesOf returns what is kept of everything that is decided.
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

// narrow returns what is decided about a tool by the store and by what is kept
// here: the less of both. When the file is intact, an approval in the store that is
// not the one kept here is an older one, and counts no more.
func (e entry) narrow(stored Entry, intact bool) Entry {
	was, blocked := tool.Fingerprint(e.Was), e.Block.approval()
	if e.Block != (block{}) && (stored.Block == nil || stored.Block.At.Before(blocked.At)) {
		stored.Block = &Block{Fingerprint: tool.Fingerprint(e.Block.Fingerprint), Mark: blocked}
	}
	refused := stored.Block != nil && stored.Pin != nil && stored.Block.Ends(stored.Pin)
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

// line is an entry as it stands in the file. It says all that holds of its
// subject from there on.
type line struct {
	subject
	entry
	Forget bool `json:"forget,omitempty"` // everything of the server
	Gaps   bool `json:"gaps,omitempty"`   // an earlier file was lost in part
}

// valid reports whether a line that was read says something.
func (l line) valid() bool {
	complete := l.Block == (block{}) || l.Block.Fingerprint != (digest{}) || l.Block.mark != (mark{}) // of an approval that was taken back
	return complete && (l.Server != "" || l.Gaps)
}

// apply has entries be what they are after a line.
func (a entries) apply(l line) {
	switch {
	case l.Forget:
		maps.DeleteFunc(a.was, func(s subject, _ digest) bool { return s.Server == l.Server })
		maps.DeleteFunc(a.more, func(s subject, _ entry) bool { return s.Server == l.Server })
	case l.Server != "":
		a.set(l.subject, l.entry)
	}
}
