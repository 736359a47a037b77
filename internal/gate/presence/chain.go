package presence

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// chain is the list of anchors, each signed by the previous one. The statements of those since the last
// root count.
type chain []Anchor

// head returns the fingerprint of the last anchor; zero for none.
func (c chain) head() Digest {
	if len(c) == 0 {
		return Digest{}
	}
	return c[len(c)-1].Fingerprint()
}

// last returns the current anchor; that of an empty chain proves nothing.
func (c chain) last() *Anchor {
	if len(c) == 0 {
		return &Anchor{Kind: None}
	}
	return &c[len(c)-1]
}

// root reports whether no earlier anchor could have signed anchor i.
func (c chain) root(i int) bool { return i == 0 || !c[i-1].proves() }

// current returns the anchors since the last root, whose statements count.
func (c chain) current() chain {
	for i := len(c) - 1; i >= 0; i-- {
		if !c[i].proves() {
			return nil
		}
		if c.root(i) {
			return c[i:]
		}
	}
	return nil
}

// find returns the anchor with a fingerprint, or nil.
func (c chain) find(fingerprint Digest) *Anchor {
	i := slices.IndexFunc(c, func(a Anchor) bool { return a.Fingerprint() == fingerprint })
	if i < 0 {
		return nil
	}
	return &c[i]
}

// signer returns the anchor that must sign anchor i: the previous one, or a root itself. Nil: none.
func (c chain) signer(i int) *Anchor {
	switch {
	case c[i].Kind == reset:
		return nil
	case c.root(i):
		if c[i].proves() {
			return &c[i]
		}
		return nil
	}
	return &c[i-1]
}

// check verifies the chain. The evidence is by nonce.
func (c chain) check(evidence map[string]*Evidence) error {
	if len(c) > maxChain {
		return fmt.Errorf("there are more than %d anchors", maxChain)
	}
	before := Digest{}
	for i := range c {
		a := &c[i]
		if a.Before != before {
			return errors.New("the anchors do not follow one another")
		}
		before = a.Fingerprint()
		signer := c.signer(i)
		if signer == nil {
			if a.Kind == None && i > 0 && c[i-1].Kind != None {
				return errors.New("an anchor was taken away unsigned")
			}
			continue
		}
		e := evidence[a.Nonce]
		if e == nil || !slices.Contains(e.Claims, a.claim()) || signer.verify(e) != nil {
			return errors.New("an anchor is not signed by the one before it")
		}
	}
	return nil
}

// grown returns the end of the part of the chain that was signed starting from the anchor with this
// fingerprint; known reports whether the chain has it. With a zero fingerprint every chain starts again.
func (c chain) grown(from Digest) (end int, known bool) {
	if end = 1 + slices.IndexFunc(c, func(a Anchor) bool { return a.Fingerprint() == from }); end == 0 {
		return 0, from == Digest{}
	}
	for end < len(c) && c.signer(end) == &c[end-1] {
		end++
	}
	return end, true
}

// ResetTime is how long after a reset nothing that grants access counts and no anchor can be set: the old
// anchor can cancel the reset in the meantime.
const ResetTime = 24 * time.Hour

// withoutResets returns the chain from before the reset.
func (c chain) withoutResets() chain {
	for len(c) > 0 && c.last().Kind == reset {
		c = c[:len(c)-1]
	}
	return c
}
