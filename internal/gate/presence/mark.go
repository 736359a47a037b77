package presence

import (
	"errors"
	"strings"
	"time"
)

// Mark is what a place beside the database has of the anchor.
type Mark struct {
	Anchor Digest    // the fingerprint of the last one that is no reset; zero: none is known
	Reset  Digest    // of the reset since; zero: there was none
	At     time.Time // when this place has learned of the reset
}

// String returns the mark as it is written: the fingerprint of the anchor, and where it was
// reset, that of the reset, and the time.
func (m Mark) String() string {
	text := m.Anchor.String()
	if m.Reset != (Digest{}) {
		text += " reset " + m.Reset.String() + " " + m.At.UTC().Format(timeForm)
	}
	return text
}

// ParseMark reads what String returns, and nothing else.
func ParseMark(text string) (m Mark, err error) {
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
		err = errors.New("it is not written as marks are")
	}
	return m, err
}

// PlaceState is how one of the places of the fingerprint stands.
type PlaceState string

// The states. What is behind follows by itself; WasReset is that the place knows of a reset
// which is not over here, and that the database has no longer.
const (
	Matches    PlaceState = "matches"
	Behind     PlaceState = "behind"
	Missing    PlaceState = "missing"
	Differs    PlaceState = "differs"
	WasReset   PlaceState = "reset"
	Unreadable PlaceState = "unreadable"
)

// Words are all states.
func (PlaceState) Words() []string {
	return []string{string(Matches), string(Behind), string(Missing), string(Differs), string(WasReset), string(Unreadable)}
}

// calledOff is what is signed to call a reset off.
func calledOff(reset Digest) Claim { return NewClaim("presence reset called off", reset.String()) }

// over reports whether the day after the reset is over.
func (m Mark) over(now time.Time) bool { return !now.Before(m.At.Add(ResetTime)) }

// follow says how a place stands that has this mark, and what it is to have from now on. A
// reset is followed by whoever sees it, and its day counted from then on, whatever time it
// has: somebody else may have written it. Anchors are followed when the one that the place
// knows has signed them, or the first of those that has signed the next. calledOff reports
// whether an anchor of the chain that is in force has called a reset off.
func (c chain) follow(m Mark, now time.Time, calledOff func(reset Digest) bool) (PlaceState, Mark) {
	wasReset := m.Reset != Digest{}
	if c.last().Kind == reset {
		if m.Reset == c.head() {
			return Matches, m
		}
		return Behind, Mark{m.Anchor, c.head(), now}
	}
	end, known := c.grown(m.Anchor)
	switch {
	case !known:
		return Differs, m
	case end == len(c) && wasReset && !calledOff(m.Reset):
		return WasReset, m
	case end == len(c) && c.head() == m.Anchor && !wasReset:
		return Matches, m
	case end == len(c):
		return Behind, Mark{Anchor: c.head()}
	case !wasReset && m.Anchor != Digest{} && c[end].Kind == reset:
		return WasReset, Mark{m.Anchor, c[end].Fingerprint(), now}
	case wasReset && !m.over(now):
		return WasReset, m
	}
	return Missing, m // the anchor in force stands alone: a person proves that it is theirs
}
