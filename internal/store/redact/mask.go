package redact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// A credentialSpan is the range of one credential in a text, and the parts of its mask.
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

// appendMask appends a mask. The mask contains no character that JSON escapes, so it is the same at any depth of
// nesting. It contains nothing that looks like a credential.
func appendMask(dst []byte, kind string, sum [4]byte) []byte {
	dst = append(append(append(dst, maskOpen...), kind...), ' ')
	return append(hex.AppendEncode(dst, sum[:]), ']')
}

// HasMask reports whether a text contains a mask, or text that looks like one.
func HasMask(text []byte) bool {
	for {
		at := bytes.Index(text, []byte(maskOpen))
		if at < 0 {
			return false
		}
		if text = text[at:]; leadingMaskLength(text) > 0 {
			return true
		}
		text = text[len(maskOpen):]
	}
}

// leadingMaskLength returns the length of the mask at the beginning of text, or 0.
func leadingMaskLength(text []byte) int {
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
