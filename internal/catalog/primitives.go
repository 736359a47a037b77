package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// Limits per server.
const (
	// maxUnlisted is the maximum number of pending primitives that are not on MCPProxy's own list.
	maxUnlisted = 5_000
	// maxListedPrimitives is the maximum number of primitives of one list. Those beyond it are ignored, and no
	// decisions are made about them.
	maxListedPrimitives = approval.MaxTools
)

// Primitive is a prompt, resource, template or the instructions of a server. It is
// immutable.
type Primitive struct {
	tool.Primitive
	// ForClients reports that clients saw the primitive in their own sessions, and that it is not on the list that
	// MCPProxy receives.
	ForClients bool
	removed    bool // removed from the list while it was pending
	scanned    *scan.ScannedDefinition
}

// ApprovalCandidate returns the primitive's definition as input for approval.
func (o *Primitive) ApprovalCandidate() approval.CandidateDefinition {
	return approval.CandidateDefinition{Kind: o.Kind, Tool: o.Name, Fingerprint: o.Fingerprint, Definition: o.Raw, Report: o.scanned.Report, Orders: o.scanned.RefersToOtherServer}
}

// toUnlisted returns a copy of o that is marked as missing from MCPProxy's own list.
func (o *Primitive) toUnlisted(forClients bool) *Primitive {
	return &Primitive{Primitive: o.Primitive, ForClients: forClients, removed: !forClients, scanned: o.scanned}
}

// primitiveKey identifies a primitive within its server.
type primitiveKey struct {
	kind tool.DefinitionKind
	name string
}

// ServerPrimitives contains the known prompts, resources, templates and instructions of one server. It never changes. A
// nil *ServerPrimitives means that the server has not listed any yet.
type ServerPrimitives struct {
	lists map[tool.DefinitionKind]*primitiveList
	// unlisted are pending primitives that are not on MCPProxy's own list: those that only clients saw, and those that
	// were removed from the list while pending.
	unlisted  map[primitiveKey]*Primitive
	admitted  bool
	epoch     uint64 // grows when more is accepted than at the time of listing
	viewCache *atomic.Pointer[DecidedPrimitives]
}

// DecidedPrimitives is ServerPrimitives with the decisions about them. It is computed once and
// never changes.
type DecidedPrimitives struct {
	decided *approval.ServerView
	counts  map[tool.DefinitionKind]PrimitiveCount
	// pendingURIs are the URIs of pending resources, normalized.
	pendingURIs       map[string]bool
	approvedTemplates []string
	pendingTemplates  []string
	decisionsHash     [sha256.Size]byte
	leftOut           leftOutDefinitions
}

// PrimitiveCount is the number of primitives of a kind, of those that are pending, and of those that a user has blocked.
type PrimitiveCount struct{ Total, Waiting, Blocked int }

// primitiveList is one list in the server's order.
type primitiveList struct {
	items    []*Primitive
	byName   map[string]*Primitive
	unusable []error // the reasons why definitions are not in items
}

func newServerPrimitives() *ServerPrimitives {
	return &ServerPrimitives{lists: map[tool.DefinitionKind]*primitiveList{}, unlisted: map[primitiveKey]*Primitive{}, viewCache: &atomic.Pointer[DecidedPrimitives]{}}
}

// clone returns a copy whose lists and unlisted can be changed.
func (o *ServerPrimitives) clone() *ServerPrimitives {
	next := newServerPrimitives()
	if o != nil {
		next.admitted, next.epoch = o.admitted, o.epoch
		maps.Copy(next.lists, o.lists)
		maps.Copy(next.unlisted, o.unlisted)
	}
	return next
}

// listOrEmpty returns the last list of a kind, or an empty list if there is none.
func (o *ServerPrimitives) listOrEmpty(kind tool.DefinitionKind) *primitiveList {
	if o != nil && o.lists[kind] != nil {
		return o.lists[kind]
	}
	return &primitiveList{}
}

// hasList reports whether the server has sent its list of a kind.
func (o *ServerPrimitives) hasList(kind tool.DefinitionKind) bool {
	return o != nil && o.lists[kind] != nil
}

// Listed returns the server's list of a kind, in its order.
func (o *ServerPrimitives) Listed(kind tool.DefinitionKind) []*Primitive {
	return o.listOrEmpty(kind).items
}

// Reviewable returns all primitives that can be approved, by kind: the listed ones, then
// pending ones that only clients saw.
func (o *ServerPrimitives) Reviewable() []*Primitive {
	var all []*Primitive
	for _, kind := range tool.PrimitiveKinds() {
		all = append(all, o.Listed(kind)...)
		var beside []*Primitive
		if o != nil {
			for n, one := range o.unlisted {
				if n.kind == kind && one.ForClients {
					beside = append(beside, one)
				}
			}
		}
		slices.SortFunc(beside, func(a, b *Primitive) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
		all = append(all, beside...)
	}
	return all
}

// FindReviewable returns the primitive of that kind and name that can be approved, or nil.
func (o *ServerPrimitives) FindReviewable(kind tool.DefinitionKind, name string) *Primitive {
	if one := o.listOrEmpty(kind).byName[name]; one != nil {
		return one
	}
	if one := o.findUnlisted(kind, name); one != nil && one.ForClients {
		return one
	}
	return nil
}

// findIdentical returns the primitive that was parsed from the same bytes, or nil.
func (o *ServerPrimitives) findIdentical(kind tool.DefinitionKind, name string, raw []byte) *Primitive {
	if one := o.listOrEmpty(kind).byName[name]; one != nil && bytes.Equal(one.Raw, raw) {
		return one
	}
	if one := o.findUnlisted(kind, name); one != nil && bytes.Equal(one.Raw, raw) {
		return one
	}
	return nil
}

// definitionOrigin is the server that sent a definition, with the cross-reference index.
type definitionOrigin struct {
	server    string
	crossRefs *scan.CrossRefIndex // of all tools
}

// parsePrimitive returns the primitive that a server sent, or the reason why it is unusable. It reuses an unchanged
// primitive.
func (o *ServerPrimitives) parsePrimitive(kind tool.DefinitionKind, raw json.RawMessage, by definitionOrigin) (*Primitive, error) {
	name := kind.ReadName(raw)
	if one := o.findIdentical(kind, name, raw); one != nil {
		return one, nil
	}
	parsed, err := tool.ParsePrimitive(kind, bytes.Clone(raw))
	if err != nil {
		return nil, err
	}
	one := &Primitive{Primitive: parsed, scanned: by.crossRefs.NewScannedPrimitive(by.server, parsed)}
	for _, was := range []*Primitive{o.listOrEmpty(kind).byName[parsed.Name], o.findUnlisted(kind, parsed.Name)} {
		if was != nil && was.Fingerprint == parsed.Fingerprint {
			one.scanned = was.scanned
		}
	}
	return one, nil
}

func (o *ServerPrimitives) findUnlisted(kind tool.DefinitionKind, name string) *Primitive {
	if o == nil {
		return nil
	}
	return o.unlisted[primitiveKey{kind, name}]
}

// withUpdatedList returns o with a new list of a kind. It keeps pending primitives that are no longer listed.
// Otherwise, a server could make a pending primitive usable by removing it from the list.
func (o *ServerPrimitives) withUpdatedList(kind tool.DefinitionKind, raws []json.RawMessage, by definitionOrigin, decided *approval.ServerView) *ServerPrimitives {
	next := o.clone()
	l := &primitiveList{byName: make(map[string]*Primitive, len(raws))}
	for i, raw := range raws {
		one, err := o.parsePrimitive(kind, raw, by)
		switch {
		case err != nil:
			err = errors.Unwrap(err)
		case l.byName[one.Name] != nil:
			err = errors.New("another one has the same " + kind.NameMember())
		case len(l.items) == maxListedPrimitives:
			err = fmt.Errorf("the list has more than %d elements", maxListedPrimitives)
		}
		if err != nil {
			l.unusable = append(l.unusable, fmt.Errorf("%s %d of its list is left out: %w", kind.Label(), i+1, err))
			continue
		}
		if one.ForClients || one.removed {
			one = &Primitive{Primitive: one.Primitive, scanned: one.scanned}
		}
		l.items, l.byName[one.Name] = append(l.items, one), one
		delete(next.unlisted, primitiveKey{kind, one.Name})
	}
	for _, was := range o.Listed(kind) {
		if l.byName[was.Name] == nil && !isPrimitiveApproved(decided, was) {
			next.addUnlisted(was.toUnlisted(false))
		}
	}
	next.lists[kind] = l
	return next
}

func (o *ServerPrimitives) addUnlisted(one *Primitive) {
	n := primitiveKey{one.Kind, one.Name}
	if _, there := o.unlisted[n]; there || len(o.unlisted) < maxUnlisted {
		o.unlisted[n] = one
	}
}

func isPrimitiveApproved(decided *approval.ServerView, o *Primitive) bool {
	return decided.DecisionsOn(o.Kind, o.Name).Approves(o.Fingerprint)
}
