package redact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// A credentialSpan is one credential in a text: where it is, and what is shown instead.
type credentialSpan struct {
	from, to int
	kind     string
	sum      [4]byte
}

func shortHash(secret []byte) (sum [4]byte) {
	full := sha256.Sum256(secret)
	copy(sum[:], full[:])
	return sum
}

const maskOpen = "[masked "

// appendMask appends the replacement. It holds nothing that JSON would have to
// escape, at any depth of nesting, and nothing that is a credential again.
func appendMask(dst []byte, kind string, sum [4]byte) []byte {
	dst = append(append(append(dst, maskOpen...), kind...), ' ')
	return append(hex.AppendEncode(dst, sum[:]), ']')
}

// HasMask reports whether something in a text was masked, or looks as if it was.
func HasMask(text []byte) bool {
	for {
		at := bytes.Index(text, []byte(maskOpen))
		if at < 0 {
			return false
		}
		if text = text[at:]; maskLength(text) > 0 {
			return true
		}
		text = text[len(maskOpen):]
	}
}

// maskLength returns the length of the mask that text begins with, 0 when it
// begins with none.
func maskLength(text []byte) int {
	const longestKind = 32
	if len(text) < len(maskOpen) || string(text[:len(maskOpen)]) != maskOpen {
		return 0
	}
	i := len(maskOpen)
	for i < len(text) && i < len(maskOpen)+longestKind && (text[i] == '-' || inCharSet(text[i], lower|digit)) {
		i++
	}
	if i+10 > len(text) || text[i] != ' ' || text[i+9] != ']' {
		return 0
	}
	for _, c := range text[i+1 : i+9] {
		if !inCharSet(c, hexLower) {
			return 0
		}
	}
	return i + 10
}
