package presence

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Claim is one line that says one thing which widens, for people to read and for code to
// compare: a few words, and quoted values.
type Claim string

// maxClaim bounds a claim in bytes, maxClaims how many a statement is over.
const (
	maxClaim  = 128 << 10
	maxClaims = 200_000
)

// NewClaim returns the claim with these words, which are a constant of the caller's, and
// these values. Other words or values make another claim.
func NewClaim(words string, values ...string) Claim {
	out := []byte(words)
	for _, v := range values {
		out = strconv.AppendQuote(append(out, ' '), v)
	}
	return Claim(out)
}

// check refuses what NewClaim cannot have made, and what is longer than claims are.
func (c Claim) check() error {
	if c == "" || len(c) > maxClaim || !utf8.ValidString(string(c)) {
		return errors.New("a claim is empty, too long or no text")
	}
	if strings.ContainsFunc(string(c), func(r rune) bool { return !strconv.IsPrint(r) }) {
		return errors.New("a claim has a character that does not print")
	}
	return nil
}

// sorted returns the claims in order, each once.
func sorted(claims []Claim) []Claim {
	return slices.Compact(slices.Sorted(slices.Values(claims)))
}

// digestOf is what a statement has of its claims, which are sorted.
func digestOf(claims []Claim) Digest {
	var text strings.Builder
	for _, c := range claims {
		text.WriteString(string(c))
		text.WriteByte('\n')
	}
	return digest("claims", []byte(text.String()))
}
