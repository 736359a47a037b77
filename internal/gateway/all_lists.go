package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/alias"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
)

// Offer is a kind of thing that all servers together offer.
type Offer uint8

// The kinds.
const (
	Tools Offer = iota
	Prompts
	Resources
	Templates
)

// offers are how the kinds are called: by the method that lists them, in its
// result, in a server's capabilities, and the member that tells one from another.
var offers = [...]struct{ method, list, capability, key string }{
	Tools:     {methodListTools, "tools", "tools", "name"},
	Prompts:   {"prompts/list", "prompts", "prompts", "name"},
	Resources: {"resources/list", "resources", "resources", "uri"},
	Templates: {"resources/templates/list", "resourceTemplates", "resources", "uriTemplate"},
}

// OfferOf gives the kind that a method lists, and what its list is called.
func OfferOf(method string) (o Offer, list string, ok bool) {
	for i, k := range offers {
		if k.method == method {
			return Offer(i), k.list, true
		}
	}
	return 0, "", false
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
		if inScope(c.Actor, n.tool.ID.Server) {
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
	return jsonrpc.SetMember(i.raw, offers[o].key, text(i.name))
}

// gather gives what all servers offer of a kind, by name. A server that cannot
// be asked in time is there with what it said last.
func (g *Gateway) gather(ctx context.Context, o Offer, c Caller) []offered {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	servers := g.offering(offers[o].capability, c.Actor)
	lists := make([][]offered, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() { lists[i] = g.offeredBy(ctx, s, o) })
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
		if s.Enabled && !s.Quarantined && inScope(a, s.Name) && has(s, capability) {
			able = append(able, s)
		}
	}
	return able
}

func has(s *catalog.Server, capability string) bool {
	return strictjson.Kind(strictjson.Find(s.State.Capabilities, capability)) == '{'
}

// offerCache remembers what servers offered.
type offerCache struct {
	mu    sync.Mutex // guards lists
	lists map[string]*[len(offers)]offerList
}

type offerList struct {
	state uint64 // upstream.State.Offers when it was asked for
	at    time.Time
	items []offered // nil: not asked for yet
	lost  bool      // it could not be had then; items are older
}

// staleAfter is how long a list is good for of a server that does not say when
// it changes.
const staleAfter = 10 * time.Second

// lostAfter is when a list is asked for again that could not be had: a server
// that hangs must not hold up the others each time.
const lostAfter = 30 * time.Second

// offeredBy gives what one server offers of a kind: what it said last, unless
// that may have changed.
func (g *Gateway) offeredBy(ctx context.Context, s *catalog.Server, o Offer) []offered {
	kind := offers[o]
	last := g.offers.last(s.Name, o)
	says, _ := strictjson.Bool(strictjson.Find(strictjson.Find(s.State.Capabilities, kind.capability), "listChanged"))
	age, good := time.Since(last.at), staleAfter
	if last.lost {
		says, good = false, lostAfter
	}
	fresh := last.items != nil && last.state == s.State.Offers && (says || age < good)
	if fresh || s.State.Phase != upstream.Ready && last.items != nil {
		return last.items
	}
	asked := time.Now()
	raws, err := g.Relays.Offered(ctx, s.Name, kind.method, kind.list)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			g.Logger.Warn("what a server offers could not be listed", "server", s.Name, "list", kind.list, "error", err)
			g.offers.keep(g.Catalog.Current(), s.Name, o, offerList{s.State.Offers, time.Now(), append([]offered{}, last.items...), true})
		}
		return last.items
	}
	items, seen := make([]offered, 0, len(raws)), map[string]bool{}
	for _, raw := range raws {
		own, ok := strictjson.String(strictjson.Find(raw, kind.key))
		if ok && own != "" && !seen[own] {
			seen[own] = true
			items = append(items, offered{server: s.Name, own: own, raw: raw})
		}
	}
	g.offers.keep(g.Catalog.Current(), s.Name, o, offerList{s.State.Offers, asked, items, false})
	return slices.Clone(items)
}

func (c *offerCache) last(server string, o Offer) offerList {
	c.mu.Lock()
	defer c.mu.Unlock()
	lists := c.lists[server]
	if lists == nil {
		return offerList{}
	}
	last := lists[o]
	last.items = slices.Clone(last.items) // they get their names in place
	return last
}

// keep takes a list over, and drops those of servers that are gone.
func (c *offerCache) keep(s *catalog.Snapshot, server string, o Offer, l offerList) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil {
		c.lists = map[string]*[len(offers)]offerList{}
	}
	for name := range c.lists {
		if s.Server(name) == nil {
			delete(c.lists, name)
		}
	}
	if c.lists[server] == nil {
		c.lists[server] = new([len(offers)]offerList)
	}
	c.lists[server][o] = l
}

// Offering says what all servers together can do for a caller. A server that
// has not said yet what it can do may be able to do anything.
type Offering struct{ Prompts, Resources, Completions, Logging bool }

// OfferingOf gives it as it is now.
func (g *Gateway) OfferingOf(c Caller) Offering {
	var all Offering
	for _, s := range g.Catalog.Current().Servers() {
		if !s.Enabled || s.Quarantined || !inScope(c.Actor, s.Name) {
			continue
		}
		unknown := s.State.Capabilities == nil
		all.Prompts = all.Prompts || unknown || has(s, "prompts")
		all.Resources = all.Resources || unknown || has(s, "resources")
		all.Completions = all.Completions || unknown || has(s, "completions")
		all.Logging = all.Logging || unknown || has(s, "logging")
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
			if s.Enabled && !s.Quarantined && inScope(c.Actor, s.Name) && has(s, one.capability) {
				sum.add([]byte(s.Name))
				sum.add(binary.BigEndian.AppendUint64(nil, s.State.Offers))
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
