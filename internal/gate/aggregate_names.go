package gate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"slices"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// aggregateEntry is an element of a list of all servers.
type aggregateEntry struct {
	name        string // among those of all servers
	server, own string
	raw         json.RawMessage
	tool        *catalog.Tool // nil for everything else
}

// definition returns the server's own under the name that it has among all, of a
// tool with its effective hints: everything else is the server's bytes.
func (e *aggregateEntry) definition(l catalog.ListKind) json.RawMessage {
	raw := e.raw
	if e.name != e.own {
		raw = wirejson.SetMember(raw, l.ElementKey(), wirejson.AppendString(nil, e.name))
	}
	if e.tool != nil {
		raw = e.tool.Effective.ReplaceHintsIn(repaired(raw), e.tool.Hints)
	}
	return raw
}

func byName(a, b *aggregateEntry) int { return strings.Compare(a.name, b.name) }

// aggregateTools are the tools of one snapshot by the names that they have among those of
// all servers. They are immutable.
type aggregateTools struct {
	version  uint64                   // of the snapshot, which must not outlive its time for this
	callable []*aggregateEntry        // by name
	digested map[string]*catalog.Tool // by the names that do not say what they stand for
	digest   [sha256.Size]byte        // of all that a list of them says
}

// current reports whether the tools are those of a snapshot, or of a later one.
func (t *aggregateTools) current(s *catalog.Snapshot) bool {
	return t != nil && t.version >= s.Version()
}

func nameTools(s *catalog.Snapshot) *aggregateTools {
	all := &aggregateTools{version: s.Version(), digested: map[string]*catalog.Tool{}}
	for _, server := range s.Servers() {
		for _, t := range server.Tools {
			name := tool.ToAlias(t.ID.Server, t.ID.Tool)
			if tool.IsDigestedAlias(name) {
				all.digested[name] = t
			}
			if t.Callable() && !t.ForClients {
				all.callable = append(all.callable, &aggregateEntry{name, t.ID.Server, t.ID.Tool, t.Raw, t})
			}
		}
	}
	slices.SortFunc(all.callable, byName)
	sum := newDigest()
	for _, e := range all.callable {
		fingerprint := e.tool.Fingerprint()
		sum.add([]byte(e.name))
		sum.add(fingerprint[:])
		sum.add(e.tool.Effective.AppendJSON(nil))
	}
	all.digest = sum.end()
	return all
}

// nameOffers names each element. An address that is one server's alone
// stays what it is, since it also stands in what the server's tools answer.
func nameOffers(l catalog.ListKind, all []*aggregateEntry) {
	owners := map[string]int{}
	for _, e := range all {
		owners[e.own]++
	}
	for _, e := range all {
		switch {
		case l == catalog.ListPrompts:
			e.name = tool.ToAlias(e.server, e.own)
		case owners[e.own] > 1 || tool.LooksLikeAliasURI(e.own):
			e.name = tool.ToAliasURI(e.server, e.own)
		default:
			e.name = e.own
		}
	}
	slices.SortFunc(all, byName)
}

// digest is a sum over parts that cannot be taken for other parts.
type digest struct{ hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

func (d digest) add(part []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(part)))
	d.Write(size[:]) // writing to a hash does not fail
	d.Write(part)
}

func (d digest) number(n uint64) { d.add(binary.BigEndian.AppendUint64(nil, n)) }

func (d digest) end() (sum [sha256.Size]byte) {
	d.Sum(sum[:0])
	return sum
}
