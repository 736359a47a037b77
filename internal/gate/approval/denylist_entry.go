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

// decisionKey identifies the subject of a decision. Kind is "" for a tool.
type decisionKey struct {
	Server string `json:"server,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
}

// kindLaunch is the launch of a server; it has no name.
const kindLaunch = "launch"

func newDecisionKey(server string, row DecisionRow) decisionKey {
	return decisionKey{server, string(row.Kind), row.Tool}
}

func (s decisionKey) emptyRow() DecisionRow {
	return DecisionRow{Kind: tool.DefinitionKind(s.Kind), Tool: s.Name}
}

// fileEntry is the file form of DefinitionDecisions. The zero value contains none.
type fileEntry struct {
	Block fileBlock         `json:"block,omitzero"`
	Off   fileAuthorAndTime `json:"off,omitzero"`
	Was   sha256Digest      `json:"was,omitzero"` // approved fingerprint
}

type fileBlock struct {
	Fingerprint sha256Digest `json:"fingerprint"`
	fileAuthorAndTime
}

type fileAuthorAndTime struct {
	By string `json:"by"`
	At int64  `json:"at"` // microseconds since 1970
}

func newFileAuthorAndTime(m AuthorAndTime) fileAuthorAndTime {
	return fileAuthorAndTime{m.By, m.At.UnixMicro()}
}

func (m fileAuthorAndTime) toAuthorAndTime() AuthorAndTime {
	return AuthorAndTime{By: m.By, At: time.UnixMicro(m.At)}
}

// sha256Digest is a SHA-256: a fingerprint or a hash of the chain.
type sha256Digest [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler.
func (d sha256Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *sha256Digest) UnmarshalText(text []byte) error {
	if len(text) != 2*len(d) {
		return fmt.Errorf("a digest has %d digits", len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

func newFileEntry(e DefinitionDecisions) fileEntry {
	var kept fileEntry
	if e.Block != nil {
		kept.Block = fileBlock{sha256Digest(e.Block.Fingerprint), newFileAuthorAndTime(e.Block.AuthorAndTime)}
	}
	if e.Off != nil {
		kept.Off = newFileAuthorAndTime(*e.Off)
	}
	switch {
	case e.isApprovalRefused():
	case e.Pin != nil:
		kept.Was = sha256Digest(e.Pin.Fingerprint)
	case e.Was != nil:
		kept.Was = sha256Digest(*e.Was)
	}
	return kept
}

// fileEntries are the decisions by subject. Most subjects have only an approved fingerprint, which is kept separately
// because a fileEntry takes four times the memory.
type fileEntries struct {
	was  map[decisionKey]sha256Digest
	more map[decisionKey]fileEntry // subjects with other decisions
}

func newFileEntries(n int) fileEntries {
	return fileEntries{was: make(map[decisionKey]sha256Digest, n), more: map[decisionKey]fileEntry{}}
}

func (a fileEntries) get(s decisionKey) fileEntry {
	if e, there := a.more[s]; there {
		return e
	}
	return fileEntry{Was: a.was[s]}
}

// set sets the entry of s; the zero value removes it.
func (a fileEntries) set(s decisionKey, e fileEntry) {
	delete(a.was, s)
	delete(a.more, s)
	switch {
	case e != fileEntry{Was: e.Was}:
		a.more[s] = e
	case e.Was != (sha256Digest{}):
		a.was[s] = e.Was
	}
}

func (a fileEntries) len() int { return len(a.was) + len(a.more) }

func (a fileEntries) all() iter.Seq2[decisionKey, fileEntry] {
	return func(yield func(decisionKey, fileEntry) bool) {
		for s, was := range a.was {
			if !yield(s, fileEntry{Was: was}) {
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

func (a fileEntries) isEqual(b fileEntries) bool {
	return maps.Equal(a.was, b.was) && maps.Equal(a.more, b.more)
}

// toFileEntries converts stored decisions.
func toFileEntries(saved StoredDecisions) fileEntries {
	n := len(saved.Reviewed) + len(saved.Launches)
	for _, rows := range saved.Tools {
		n += len(rows)
	}
	all := newFileEntries(n)
	for server, rows := range saved.Tools {
		for _, row := range rows {
			all.set(newDecisionKey(server, row), newFileEntry(row.DefinitionDecisions))
		}
	}
	for server, f := range saved.Reviewed {
		all.set(decisionKey{server, kindLaunch, ""}, fileEntry{Was: sha256Digest(f)})
	}
	for _, l := range saved.Launches {
		all.set(decisionKey{l.Server, kindLaunch, ""}, fileEntry{Was: sha256Digest(l.Fingerprint)})
	}
	return all
}

// restrictStored combines the entry of the store with the entry of the file, and keeps the restrictions of both. If
// the file is complete, a different approval in the store is outdated and not valid. An approval that a block
// overrides is not valid either: it stays as the baseline, and is dropped if another block replaces that one.
func (e fileEntry) restrictStored(stored DefinitionDecisions, intact bool) DefinitionDecisions {
	was, blocked, refused := tool.Fingerprint(e.Was), e.Block.toAuthorAndTime(), stored.isApprovalRefused()
	if e.Block != (fileBlock{}) && (stored.Block == nil || stored.Block.At.Before(blocked.At)) {
		stored.Block = &Block{Fingerprint: tool.Fingerprint(e.Block.Fingerprint), AuthorAndTime: blocked}
	}
	if !stored.isApprovalRefused() && (refused || intact && !stored.Approves(was)) {
		stored.Pin = nil
	}
	if stored.Off == nil && e.Off != (fileAuthorAndTime{}) {
		off := e.Off.toAuthorAndTime()
		stored.Off = &off
	}
	if stored.Pin == nil && was != (tool.Fingerprint{}) {
		stored.Was = &was
	}
	return stored
}

// fileLine is a line of the file: the complete new entry of its subject.
type fileLine struct {
	decisionKey
	fileEntry
	Forget           bool `json:"forget,omitempty"` // delete everything about the server
	RestrictionsLost bool `json:"gaps,omitempty"`   // an earlier file was partially lost
}

// isValid reports whether a parsed line is meaningful.
func (l fileLine) isValid() bool {
	complete := l.Block == (fileBlock{}) || l.Block.Fingerprint != (sha256Digest{}) || l.Block.fileAuthorAndTime != (fileAuthorAndTime{}) // or a withdrawn approval
	return complete && (l.Server != "" || l.RestrictionsLost)
}

// applyLine applies a line to entries.
func (a fileEntries) applyLine(l fileLine) {
	switch {
	case l.Forget:
		maps.DeleteFunc(a.was, func(s decisionKey, _ sha256Digest) bool { return s.Server == l.Server })
		maps.DeleteFunc(a.more, func(s decisionKey, _ fileEntry) bool { return s.Server == l.Server })
	case l.Server != "":
		a.set(l.decisionKey, l.fileEntry)
	}
}
