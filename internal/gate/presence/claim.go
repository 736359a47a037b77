package presence

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Claim is one line that states one grant of access. It consists of fixed words and quoted values. Users read it, and
// code compares it.
type Claim string

// maxClaim limits the size of a claim in bytes, maxClaims the number of claims in a statement.
const (
	maxClaim  = 128 << 10
	maxClaims = 200_000
)

// NewClaim returns the claim with these words, a constant of the caller, and values. Different words or values result
// in a different claim.
func NewClaim(words string, values ...string) Claim {
	out := []byte(words)
	for _, v := range values {
		out = strconv.AppendQuote(append(out, ' '), v)
	}
	return Claim(out)
}

// validate rejects claims that NewClaim cannot have made, or that are too long.
func (c Claim) validate() error {
	if c == "" || len(c) > maxClaim || !utf8.ValidString(string(c)) {
		return errors.New("a claim is empty, too long or not a text")
	}
	if strings.ContainsFunc(string(c), func(r rune) bool { return !strconv.IsPrint(r) }) {
		return errors.New("a claim has a character that is not printable")
	}
	return nil
}

// sortClaims returns the claims sorted, without duplicates.
func sortClaims(claims []Claim) []Claim {
	return slices.Compact(slices.Sorted(slices.Values(claims)))
}

// claimsDigest returns the digest of sorted claims for a statement.
func claimsDigest(claims []Claim) Digest {
	var text strings.Builder
	for _, c := range claims {
		text.WriteString(string(c))
		text.WriteByte('\n')
	}
	return domainDigest("claims", []byte(text.String()))
}
