package presence

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// anchorChain is the list of anchors, each signed by the previous one. Statements of the anchors since the last root
// are valid.
type anchorChain []Anchor

// headFingerprint returns the fingerprint of the last anchor; zero if there is none.
func (c anchorChain) headFingerprint() Digest {
	if len(c) == 0 {
		return Digest{}
	}
	return c[len(c)-1].Fingerprint()
}

// lastAnchor returns the current anchor. For an empty chain it returns an anchor that verifies nothing.
func (c anchorChain) lastAnchor() *Anchor {
	if len(c) == 0 {
		return &Anchor{Kind: None}
	}
	return &c[len(c)-1]
}

// isRoot reports whether no earlier anchor could have signed anchor i.
func (c anchorChain) isRoot(i int) bool { return i == 0 || !c[i-1].canVerifyStatements() }

// sinceLastRoot returns the anchors since the last root, whose statements are valid.
func (c anchorChain) sinceLastRoot() anchorChain {
	for i := len(c) - 1; i >= 0; i-- {
		if !c[i].canVerifyStatements() {
			return nil
		}
		if c.isRoot(i) {
			return c[i:]
		}
	}
	return nil
}

// findByFingerprint returns the anchor with a fingerprint, or nil.
func (c anchorChain) findByFingerprint(fingerprint Digest) *Anchor {
	i := slices.IndexFunc(c, func(a Anchor) bool { return a.Fingerprint() == fingerprint })
	if i < 0 {
		return nil
	}
	return &c[i]
}

// signerOf returns the anchor that must sign anchor i: the previous one, or, for a root, the anchor itself. It
// returns nil if none has to sign.
func (c anchorChain) signerOf(i int) *Anchor {
	switch {
	case c[i].Kind == reset:
		return nil
	case c.isRoot(i):
		if c[i].canVerifyStatements() {
			return &c[i]
		}
		return nil
	}
	return &c[i-1]
}

// verify verifies the chain. evidence is indexed by nonce.
func (c anchorChain) verify(evidence map[string]*Evidence) error {
	if len(c) > maxChain {
		return fmt.Errorf("there are more than %d anchors", maxChain)
	}
	before := Digest{}
	for i := range c {
		a := &c[i]
		if a.Before != before {
			return errors.New("an anchor does not name the previous one")
		}
		before = a.Fingerprint()
		signer := c.signerOf(i)
		if signer == nil {
			if a.Kind == None && i > 0 && c[i-1].Kind != None {
				return errors.New("an anchor was removed without a signature")
			}
			continue
		}
		e := evidence[a.Nonce]
		if e == nil || !slices.Contains(e.Claims, a.toClaim()) || signer.verifyEvidence(e) != nil {
			return errors.New("an anchor is not signed by the previous one")
		}
	}
	return nil
}

// endOfSignedPart returns the end of the signed part of the chain that starts at the anchor with this fingerprint. known
// reports whether the chain contains this anchor. For a zero fingerprint, end is 0 and known is true.
func (c anchorChain) endOfSignedPart(from Digest) (end int, known bool) {
	if end = 1 + slices.IndexFunc(c, func(a Anchor) bool { return a.Fingerprint() == from }); end == 0 {
		return 0, from == Digest{}
	}
	for end < len(c) && c.signerOf(end) == &c[end-1] {
		end++
	}
	return end, true
}

// resetTime is the delay after a reset. Until it ends, no decision that grants access is valid, no anchor can be set,
// and the old anchor can cancel the reset.
const resetTime = 24 * time.Hour

// beforeReset returns the chain from before the reset.
func (c anchorChain) beforeReset() anchorChain {
	for len(c) > 0 && c.lastAnchor().Kind == reset {
		c = c[:len(c)-1]
	}
	return c
}
