package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// The bounds of what is kept of one server's offers.
const (
	// maxAside is how many offers are kept that wait and are on no list of ours.
	maxAside = 5_000
	// maxOffers is how many offers of one list are kept: those beyond it are not
	// known, and nothing is decided about them.
	maxOffers = approval.MaxTools
)

// Offer is something that a server offers beside tools, as the product sees it.
// It is immutable.
type Offer struct {
	tool.Offer
	// ForClients reports whether clients were shown it in sessions of their own, and
	// that it is not on the list that MCPProxy gets.
	ForClients bool
	gone       bool // taken off the list while it waited
	scanned    *scan.Scanned
}

// Candidate is the offer's definition as it is judged.
func (o *Offer) Candidate() approval.Candidate {
	return approval.Candidate{Kind: o.Kind, Tool: o.Name, Fingerprint: o.Fingerprint, Definition: o.Raw, Report: o.scanned.Report, Orders: o.scanned.Orders}
}

// aside is o as one that is on no list of ours.
func (o *Offer) aside(forClients bool) *Offer {
	return &Offer{Offer: o.Offer, ForClients: forClients, gone: !forClients, scanned: o.scanned}
}

// offerName tells an offer from the others of its server.
type offerName struct {
	kind tool.Kind
	name string
}

// Offers is what one server offers beside tools, as far as it is known. It
// never changes. A nil Offers is that of a server that has told nothing yet.
type Offers struct {
	lists map[tool.Kind]*offerList
	// beside are the offers that are on no list of ours: of what clients were
	// shown that which waits, and what was taken off a list while it waited.
	beside   map[offerName]*Offer
	admitted bool
	epoch    uint64 // grows when more of it is accepted than was when it was listed
	seen     *atomic.Pointer[OffersView]
}

// OffersView is what a server offers beside tools, held against what is
// decided: worked out once, however often it is asked. It never changes.
type OffersView struct {
	decided *approval.View
	counts  map[tool.Kind]OfferCount
	// heldAt are the resources that wait, by the plainest spelling of their
	// addresses.
	heldAt    map[string]bool
	open      []string // templates that are approved
	closed    []string // templates that wait
	decisions [sha256.Size]byte
}

// OfferCount is how many offers of a kind there are, and how many wait.
type OfferCount struct{ Total, Waiting int }

// offerList is one list as the server gave it.
type offerList struct {
	items  []*Offer
	byName map[string]*Offer
}

func newOffers() *Offers {
	return &Offers{lists: map[tool.Kind]*offerList{}, beside: map[offerName]*Offer{}, seen: &atomic.Pointer[OffersView]{}}
}

// clone is o with lists and beside that may be changed.
func (o *Offers) clone() *Offers {
	next := newOffers()
	if o != nil {
		next.admitted, next.epoch = o.admitted, o.epoch
		maps.Copy(next.lists, o.lists)
		maps.Copy(next.beside, o.beside)
	}
	return next
}

// list returns the last list of a kind, empty when there was none.
func (o *Offers) list(kind tool.Kind) *offerList {
	if o != nil && o.lists[kind] != nil {
		return o.lists[kind]
	}
	return &offerList{}
}

// Told reports whether the server has given its list of a kind.
func (o *Offers) Told(kind tool.Kind) bool { return o != nil && o.lists[kind] != nil }

// Listed returns what the server lists of a kind, in its order.
func (o *Offers) Listed(kind tool.Kind) []*Offer { return o.list(kind).items }

// Shown returns everything that is there to be approved, kind by kind: what the
// server lists, then what clients alone were shown and waits.
func (o *Offers) Shown() []*Offer {
	var all []*Offer
	for _, kind := range tool.OfferKinds() {
		all = append(all, o.Listed(kind)...)
		var beside []*Offer
		if o != nil {
			for n, one := range o.beside {
				if n.kind == kind && one.ForClients {
					beside = append(beside, one)
				}
			}
		}
		slices.SortFunc(beside, func(a, b *Offer) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
		all = append(all, beside...)
	}
	return all
}

// Find returns the offer of that kind and name that is there to be approved, or
// nil.
func (o *Offers) Find(kind tool.Kind, name string) *Offer {
	if one := o.list(kind).byName[name]; one != nil {
		return one
	}
	if one := o.besides(kind, name); one != nil && one.ForClients {
		return one
	}
	return nil
}

// recall returns the offer that has been read from these very bytes, or nil.
func (o *Offers) recall(kind tool.Kind, name string, raw []byte) *Offer {
	if one := o.list(kind).byName[name]; one != nil && bytes.Equal(one.Raw, raw) {
		return one
	}
	if one := o.besides(kind, name); one != nil && bytes.Equal(one.Raw, raw) {
		return one
	}
	return nil
}

// source is who says something, among whom.
type source struct {
	server string
	names  *scan.CrossRefs // of all tools
}

// read makes an offer of what a server sent, nil when it cannot be used. What
// is the same as before is not looked at again.
func (o *Offers) read(kind tool.Kind, raw json.RawMessage, by source) *Offer {
	name := kind.NameIn(raw)
	if one := o.recall(kind, name, raw); one != nil {
		return one
	}
	parsed, err := tool.ParseOffer(kind, bytes.Clone(raw))
	if err != nil {
		return nil
	}
	one := &Offer{Offer: parsed, scanned: by.names.Offer(by.server, parsed)}
	for _, was := range []*Offer{o.list(kind).byName[parsed.Name], o.besides(kind, parsed.Name)} {
		if was != nil && was.Fingerprint == parsed.Fingerprint {
			one.scanned = was.scanned
		}
	}
	return one
}

func (o *Offers) besides(kind tool.Kind, name string) *Offer {
	if o == nil {
		return nil
	}
	return o.beside[offerName{kind, name}]
}

// listed is o with a new list of a kind. What waited and is not on it any more
// is remembered: its server must not have it used by taking it off the list.
func (o *Offers) listed(kind tool.Kind, raws []json.RawMessage, by source, decided *approval.View) *Offers {
	next := o.clone()
	l := &offerList{byName: make(map[string]*Offer, len(raws))}
	for _, raw := range raws {
		one := o.read(kind, raw, by)
		if one == nil || l.byName[one.Name] != nil || len(l.items) == maxOffers {
			continue
		}
		if one.ForClients || one.gone {
			one = &Offer{Offer: one.Offer, scanned: one.scanned}
		}
		l.items, l.byName[one.Name] = append(l.items, one), one
		delete(next.beside, offerName{kind, one.Name})
	}
	for _, was := range o.Listed(kind) {
		if l.byName[was.Name] == nil && !approved(decided, was) {
			next.putAside(was.aside(false))
		}
	}
	next.lists[kind] = l
	return next
}

func (o *Offers) putAside(one *Offer) {
	n := offerName{one.Kind, one.Name}
	if _, there := o.beside[n]; there || len(o.beside) < maxAside {
		o.beside[n] = one
	}
}

func approved(decided *approval.View, o *Offer) bool {
	return decided.Of(o.Kind, o.Name).Approves(o.Fingerprint)
}
