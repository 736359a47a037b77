package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/alias"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/door"
	"mcpproxy/internal/offers"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
)

// Offer is a kind of thing that all servers together offer.
type Offer = offers.List

// The kinds.
const (
	Tools     = offers.Tools
	Prompts   = offers.Prompts
	Resources = offers.Resources
	Templates = offers.Templates
)

// OfferOf returns the kind that a method lists, and what its list is called.
func OfferOf(method string) (o Offer, list string, ok bool) {
	if o, ok = offers.ListOf(method); ok {
		list = o.Member()
	}
	return o, list, ok
}

// The bounds of a page.
const (
	pageItems = 1000
	pageBytes = 4 << 20
)

// Page is a part of a list. Next is the cursor of the following one, empty at
// the end.
type Page struct {
	Items []json.RawMessage
	Next  string
}

// ListAll gives the page of a list of all servers that begins at a cursor: by
// name, so that a page goes on where the one before ended, whatever has changed
// meanwhile.
func (g *Gateway) ListAll(ctx context.Context, o Offer, cursor string, c Caller) (Page, error) {
	after, err := readCursor(o, cursor)
	if err != nil {
		return Page{}, err
	}
	if o == Tools {
		return g.toolsPage(after, c), nil
	}
	items := g.gather(ctx, o, c)
	at, found := slices.BinarySearchFunc(items, after, func(i offered, after string) int { return cmp.Compare(i.name, after) })
	if found {
		at++
	}
	return page(o, items[at:], func(i offered) (string, json.RawMessage) { return i.name, i.definition(o) }), nil
}

func (g *Gateway) toolsPage(after string, c Caller) Page {
	tools := g.all().callable
	at, found := slices.BinarySearchFunc(tools, after, func(n named, after string) int { return cmp.Compare(n.name, after) })
	if found {
		at++
	}
	var seen []named
	for _, n := range tools[at:] {
		if door.InScope(c.Actor, n.tool.ID.Server) {
			if seen = append(seen, n); len(seen) > pageItems {
				break
			}
		}
	}
	return page(Tools, seen, func(n named) (string, json.RawMessage) { return n.name, n.definition() })
}

// page takes as much of a sorted list as one answer may have.
func page[T any](o Offer, items []T, show func(T) (name string, raw json.RawMessage)) Page {
	var p Page
	size, last := 0, ""
	for i, item := range items {
		name, raw := show(item)
		if i == pageItems || i > 0 && size+len(raw) > pageBytes {
			p.Next = makeCursor(o, last)
			break
		}
		p.Items = append(p.Items, raw)
		size, last = size+len(raw), name
	}
	return p
}

// A cursor is the kind of the list and the last name of a page.
func makeCursor(o Offer, last string) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{'1', '0' + byte(o)}, last...))
}

func readCursor(o Offer, cursor string) (after string, err error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) < 3 || raw[0] != '1' || raw[1] != '0'+byte(o) {
		return "", problem.New(problem.InvalidParameter, "The cursor is not one that was given for this list.",
			"Ask for the first page, without a cursor.").With("parameter", "cursor")
	}
	return string(raw[2:]), nil
}

// offered is a prompt, a resource or a template of a server.
type offered struct {
	server, own string
	name        string // among those of all servers
	raw         json.RawMessage
}

// definition is the server's own, under the name that it has among all.
func (i offered) definition(o Offer) json.RawMessage {
	if i.name == i.own {
		return i.raw
	}
	return rawjson.SetMember(i.raw, o.Key(), rawjson.AppendString(nil, i.name))
}

// gather gives what all servers offer of a kind, by name. A server that cannot
// be asked in time is there with what it said last.
func (g *Gateway) gather(ctx context.Context, o Offer, c Caller) []offered {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	servers := g.offering(o.Capability(), c.Actor)
	lists := make([][]offered, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			for _, one := range g.offers.Of(ctx, s, o) {
				lists[i] = append(lists[i], offered{server: s.Name, own: one.Name, raw: one.Raw})
			}
		})
	}
	asking.Wait()
	items := slices.Concat(lists...)
	nameOffers(o, items)
	slices.SortFunc(items, func(a, b offered) int { return strings.Compare(a.name, b.name) })
	return items
}

// nameOffers gives each element its name. An address that is one server's alone
// stays what it is, since it also stands in what the server's tools answer.
func nameOffers(o Offer, items []offered) {
	owners := map[string]int{}
	for _, i := range items {
		owners[i.own]++
	}
	for n := range items {
		i := &items[n]
		switch {
		case o == Prompts:
			i.name = alias.Name(i.server, i.own)
		case owners[i.own] > 1 || alias.NamesServer(i.own):
			i.name = alias.URI(i.server, i.own)
		default:
			i.name = i.own
		}
	}
}

// offering are the servers that can be spoken to and have, as far as is known,
// the capability.
func (g *Gateway) offering(capability string, a auth.Actor) []*catalog.Server {
	var able []*catalog.Server
	for _, s := range g.Catalog.Current().Servers() {
		if s.Enabled && !s.Quarantined && door.InScope(a, s.Name) && offers.Has(s, capability) {
			able = append(able, s)
		}
	}
	return able
}

// Offering says what all servers together can do for a caller. A server that
// has not said yet what it can do may be able to do anything.
type Offering struct{ Prompts, Resources, Completions, Logging bool }

// OfferingOf gives it as it is now.
func (g *Gateway) OfferingOf(c Caller) Offering {
	var all Offering
	for _, s := range g.Catalog.Current().Servers() {
		if !s.Enabled || s.Quarantined || !door.InScope(c.Actor, s.Name) {
			continue
		}
		unknown := s.State.Capabilities == nil
		all.Prompts = all.Prompts || unknown || offers.Has(s, "prompts")
		all.Resources = all.Resources || unknown || offers.Has(s, "resources")
		all.Completions = all.Completions || unknown || offers.Has(s, "completions")
		all.Logging = all.Logging || unknown || offers.Has(s, "logging")
	}
	return all
}

// Listed stands for what the lists of all servers say: two that are equal say
// the same.
type Listed struct{ Tools, Prompts, Resources [32]byte }

// ListedNow gives it, and a channel that is closed when it may be another.
func (g *Gateway) ListedNow(c Caller) (Listed, <-chan struct{}) {
	snapshot := g.Catalog.Current()
	l := Listed{Tools: g.all().digest} // of this snapshot, or of one that has replaced it
	for _, one := range []struct {
		capability string
		to         *[32]byte
	}{{"prompts", &l.Prompts}, {"resources", &l.Resources}} {
		sum := newDigest()
		for _, s := range snapshot.Servers() {
			if s.Enabled && !s.Quarantined && door.InScope(c.Actor, s.Name) && offers.Has(s, one.capability) {
				sum.add([]byte(s.Name))
				sum.add(binary.BigEndian.AppendUint64(nil, s.State.Offers))
				decisions := g.Catalog.OffersNow(s.Name).Decisions()
				sum.add(decisions[:])
			}
		}
		*one.to = sum.end()
	}
	return l, snapshot.Replaced()
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

func (d digest) end() (sum [32]byte) {
	d.Sum(sum[:0])
	return sum
}
