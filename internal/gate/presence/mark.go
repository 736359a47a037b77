package presence

import (
	"errors"
	"strings"
	"time"
)

// FingerprintMark is the data about the anchor in a fingerprint store.
type FingerprintMark struct {
	Anchor Digest    // fingerprint of the last anchor that is not a reset; zero: none
	Reset  Digest    // fingerprint of a later reset; zero: none
	At     time.Time // when this store learned of the reset
}

// String returns the stored form: the fingerprint of the anchor and, after a reset, the fingerprint and time of the
// reset.
func (m FingerprintMark) String() string {
	text := m.Anchor.String()
	if m.Reset != (Digest{}) {
		text += " reset " + m.Reset.String() + " " + m.At.UTC().Format(timeForm)
	}
	return text
}

// ParseFingerprintMark parses the result of String, and rejects any other text.
func ParseFingerprintMark(text string) (m FingerprintMark, err error) {
	anchor, since, _ := strings.Cut(text, " reset ")
	if err := m.Anchor.UnmarshalText([]byte(anchor)); err != nil {
		return m, err
	}
	if since != "" {
		reset, at, _ := strings.Cut(since, " ")
		if err := m.Reset.UnmarshalText([]byte(reset)); err != nil {
			return m, err
		}
		m.At, err = time.Parse(timeForm, at)
	}
	if err == nil && m.String() != text {
		err = errors.New("it does not have the format of a mark")
	}
	return m, err
}

// FingerprintState is the state of a fingerprint store.
type FingerprintState string

// The states. Behind resolves itself. WasReset means that the store knows of an unfinished reset that the database no
// longer contains.
const (
	Matches    FingerprintState = "matches"
	Behind     FingerprintState = "behind"
	Missing    FingerprintState = "missing"
	Differs    FingerprintState = "differs"
	WasReset   FingerprintState = "reset"
	Unreadable FingerprintState = "unreadable"
)

// Words returns all states.
func (FingerprintState) Words() []string {
	return []string{string(Matches), string(Behind), string(Missing), string(Differs), string(WasReset), string(Unreadable)}
}

// cancelResetClaim returns the claim that is signed to cancel a reset.
func cancelResetClaim(reset Digest) Claim {
	return NewClaim("presence reset cancelled", reset.String())
}

// isResetOver reports whether resetTime has passed since the reset.
func (m FingerprintMark) isResetOver(now time.Time) bool { return !now.Before(m.At.Add(resetTime)) }

// nextMark returns the state of a fingerprint store with this mark, and its new mark. Every store accepts a reset and
// measures resetTime from that moment. It ignores the time in the reset, because another program may have written it.
// A store accepts an anchor that its known anchor, or a successor of it, signed. calledOff reports whether an anchor
// of the current chain has cancelled a reset.
func (c anchorChain) nextMark(m FingerprintMark, now time.Time, calledOff func(reset Digest) bool) (FingerprintState, FingerprintMark) {
	wasReset := m.Reset != Digest{}
	if c.lastAnchor().Kind == reset {
		if m.Reset == c.headFingerprint() {
			return Matches, m
		}
		return Behind, FingerprintMark{m.Anchor, c.headFingerprint(), now}
	}
	end, known := c.endOfSignedPart(m.Anchor)
	switch {
	case !known:
		return Differs, m
	case end == len(c) && wasReset && !calledOff(m.Reset):
		return WasReset, m
	case end == len(c) && c.headFingerprint() == m.Anchor && !wasReset:
		return Matches, m
	case end == len(c):
		return Behind, FingerprintMark{Anchor: c.headFingerprint()}
	case !wasReset && m.Anchor != Digest{} && c[end].Kind == reset:
		return WasReset, FingerprintMark{m.Anchor, c[end].Fingerprint(), now}
	case wasReset && !m.isResetOver(now):
		return WasReset, m
	}
	return Missing, m // a root anchor: the user must prove that they own it
}
