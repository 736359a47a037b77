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
	"mcpproxy/internal/problem"
)

// aggregateListEntry is one tool, prompt or resource in a list of all servers.
type aggregateListEntry struct {
	name        string // name in the list of all servers
	server, own string
	raw         json.RawMessage // in the form that strict clients accept; calls are checked against the server's own definition
	tool        *catalog.Tool   // nil for everything else
}

// renamedDefinition returns the definition under its name in the list of all servers. A tool has its effective hints,
// and the user's description if there is one. All other bytes are the server's, unless strict clients would reject them.
func (e *aggregateListEntry) renamedDefinition(l catalog.ListKind) json.RawMessage {
	raw := e.raw
	if e.name != e.own {
		raw = wirejson.SetMember(raw, l.ElementKey(), wirejson.AppendString(nil, e.name))
	}
	if e.tool != nil {
		raw = e.tool.Effective.ReplaceHintsIn(raw, e.tool.Hints)
		if shown := e.tool.Shown(); shown.Description != e.tool.Description {
			raw = wirejson.SetMember(raw, "description", wirejson.AppendString(nil, shown.Description))
		}
	}
	return raw
}

func compareByName(a, b *aggregateListEntry) int { return strings.Compare(a.name, b.name) }

// aggregateToolTable contains the tools of one snapshot by their names on /mcp/all. It is immutable.
type aggregateToolTable struct {
	version      uint64                   // version of the snapshot; the table keeps no reference to the snapshot
	callable     []*aggregateListEntry    // by name
	malformed    map[tool.ID]error        // the reasons why callable tools are not listed
	byHashedName map[string]*catalog.Tool // by hashed alias, also of earlier versions
	digest       [sha256.Size]byte        // digest of the list of tools
	apps         appTable
}

// malformedDefinitionProblem returns the problem of using a tool or prompt that the list omits because its definition
// is malformed.
func malformedDefinitionProblem(kind tool.DefinitionKind, server, name string, err error) *problem.Problem {
	return problem.Newf(problem.InvalidName, "The %s '%s' is not listed here, because its definition is malformed: its %v.", kind.Label(), problem.ClipName(name), err).
		WithHint("Use it at the address of its server, /mcp/servers/"+server+", or tell the user: the server has to correct the definition.").
		With("parameter", "name").With("server", server)
}

// isCurrentFor reports whether the table belongs to the snapshot or to a later one.
func (t *aggregateToolTable) isCurrentFor(s *catalog.Snapshot) bool {
	return t != nil && t.version >= s.Version()
}

// newAggregateToolTable names the tools of a snapshot, and lists those that isListed selects.
func newAggregateToolTable(s *catalog.Snapshot, isListed func(*catalog.Tool) bool) *aggregateToolTable {
	all := &aggregateToolTable{version: s.Version(), apps: newAppTable(s), malformed: map[tool.ID]error{}, byHashedName: map[string]*catalog.Tool{}}
	for _, server := range s.Servers() {
		for _, t := range server.Tools {
			name := tool.ToAlias(t.ID.Server, t.Shown().ShownName())
			for _, alias := range []string{name, tool.ToAlias(t.ID.Server, t.ID.Tool), tool.FormerAlias(t.ID.Server, t.ID.Tool)} {
				if tool.IsDigestedAlias(alias) {
					all.byHashedName[alias] = t
				}
			}
			if !t.Callable() || t.ForClients || t.ShadowedBy() != "" {
				continue
			}
			raw, err := t.StrictForm()
			if err != nil {
				all.malformed[t.ID] = err
			} else if isListed(t) {
				if uri := all.apps.nameOf(t.ID.Server, t.App.URI); uri != t.App.URI {
					raw = tool.ReplaceAppURI(raw, uri)
				}
				all.callable = append(all.callable, &aggregateListEntry{name, t.ID.Server, t.ID.Tool, raw, t})
			}
		}
	}
	slices.SortFunc(all.callable, compareByName)
	sum := newListHasher()
	for _, e := range all.callable {
		fingerprint := e.tool.Fingerprint()
		sum.addPart([]byte(e.name))
		sum.addPart(fingerprint[:])
		sum.addPart([]byte(e.tool.Shown().Description))
		sum.addPart(e.tool.Effective.AppendJSON(nil))
		sum.addPart([]byte(all.apps.nameOf(e.server, e.tool.App.URI)))
	}
	all.digest = sum.finalSum()
	return all
}

// assignPrimitiveNames assigns names to prompts and resources. A URI that only one server lists keeps its name,
// because results of that server's tools contain it, too. A URI of a user interface has the name that the tools give it.
// Some clients reject a list that contains a resource whose URI is not absolute.
func assignPrimitiveNames(l catalog.ListKind, all []*aggregateListEntry, apps appTable) {
	owners := map[string]int{}
	for _, e := range all {
		owners[e.own]++
	}
	for _, e := range all {
		switch {
		case l == catalog.ListPrompts:
			e.name = tool.ToAlias(e.server, e.own)
		case len(apps.servers[e.own]) > 0 && tool.IsAbsoluteURI(e.own):
			e.name = apps.nameOf(e.server, e.own)
		case owners[e.own] > 1 || tool.LooksLikeAliasURI(e.own) || l == catalog.ListResources && !tool.IsAbsoluteURI(e.own):
			e.name = tool.ToAliasURI(e.server, e.own)
		default:
			e.name = e.own
		}
	}
	slices.SortFunc(all, compareByName)
}

// listHasher hashes parts with their lengths, so that different parts never have the same input.
type listHasher struct{ hash.Hash }

func newListHasher() listHasher { return listHasher{sha256.New()} }

func (d listHasher) addPart(part []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(part)))
	d.Write(size[:]) // writing to a hash does not fail
	d.Write(part)
}

func (d listHasher) addNumber(n uint64) { d.addPart(binary.BigEndian.AppendUint64(nil, n)) }

func (d listHasher) finalSum() (sum [sha256.Size]byte) {
	d.Sum(sum[:0])
	return sum
}
