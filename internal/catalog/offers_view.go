package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"net/url"
	"path"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
)

func (o *Offers) view(decided *approval.View) *OffersView {
	v := &OffersView{decided: decided, counts: map[tool.Kind]OfferCount{}, heldAt: map[string]bool{}}
	sum, decidedAny := sha256.New(), o.epoch > 0
	sum.Write(binary.BigEndian.AppendUint64(nil, o.epoch)) // writing to a hash does not fail
	look := func(one *Offer) {
		ok := approved(decided, one)
		if !one.gone {
			n := v.counts[one.Kind]
			n.Total++
			if !ok {
				n.Waiting++
			}
			v.counts[one.Kind] = n
		}
		switch {
		case one.Kind == tool.KindTemplate && ok:
			v.open = append(v.open, one.Name)
		case one.Kind == tool.KindTemplate:
			v.closed = append(v.closed, one.Name)
		case one.Kind == tool.KindResource && !ok:
			v.heldAt[plainest(one.Name)] = true
		}
		if by := decided.Of(one.Kind, one.Name); by.Block != nil || by.Pin != nil && by.Pin.ByUser() {
			decidedAny = true
			sum.Write([]byte(one.Kind + "\x00" + tool.Kind(one.Name)))
			if ok {
				sum.Write(one.Fingerprint[:])
			}
		}
	}
	for _, kind := range tool.OfferKinds() {
		for _, one := range o.Listed(kind) {
			look(one)
		}
	}
	for _, one := range o.beside {
		look(one)
	}
	if decidedAny {
		sum.Sum(v.decisions[:0])
	}
	return v
}

// Approves reports whether the offer is the one that is approved.
func (v *OffersView) Approves(o *Offer) bool { return approved(v.decided, o) }

// Counts returns how many offers there are, by kind. Kinds without any are left
// out.
func (v *OffersView) Counts() map[tool.Kind]OfferCount { return v.counts }

// Decisions is another sum when people have decided otherwise about an offer
// that is there.
func (v *OffersView) Decisions() [sha256.Size]byte { return v.decisions }

// OfferUse returns the status with which an offer may be used that a client
// names: callable also for a resource that the server does not list and nobody has
// refused, since servers let their clients follow links that are in no list. A prompt that
// is on no list needs an approval: a server may list it in sessions of clients alone.
func (c *Catalog) OfferUse(server string, kind tool.Kind, name string) policy.Status {
	o, decided := c.Offers(server), c.Book.View(server)
	if one := o.list(kind).byName[name]; one != nil {
		return c.OfferStatus(server, one)
	}
	if one := o.besides(kind, name); one != nil {
		return c.OfferStatus(server, one)
	}
	free := decided.Of(kind, name).Block == nil
	if kind == tool.KindPrompt && o.Told(kind) {
		rules, _, _ := c.rules(server)
		free = free && (rules.Trust == approval.Auto || decided.Of(kind, name).Pin != nil)
	}
	if kind == tool.KindResource && free {
		v := c.OffersNow(server)
		free = !v.heldAt[plainest(name)] && v.reachable(name)
	}
	return c.offerStatus(server, free)
}

// reachable reports whether an address that is on no list may be read: that
// which templates fit needs one that is approved.
func (v *OffersView) reachable(uri string) bool {
	fits := func(templates []string) bool {
		for _, t := range templates {
			if tool.MatchesTemplate(t, uri) || tool.MatchesTemplate(plainest(t), plainest(uri)) {
				return true
			}
		}
		return false
	}
	return fits(v.open) || !fits(v.closed)
}

// plainest is one spelling of an address for all that a server may take for the
// same: letters, escapes, dots and what stands behind it make no difference.
func plainest(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	for range 3 { // escapes may be escaped
		plain, err := url.PathUnescape(uri)
		if err != nil || plain == uri {
			break
		}
		uri = plain
	}
	scheme, rest, ok := strings.Cut(strings.ToLower(uri), ":")
	if !ok {
		return path.Clean(scheme)
	}
	return scheme + ":" + path.Clean("/"+strings.TrimSpace(rest))
}
