package redact

import (
	"encoding/json"
)

// findInDecoded finds credentials in decoded text, which is JSON or plain text.
func (f *credentialFinder) findInDecoded(text []byte) []credentialSpan {
	if !mayHoldCredential(text) {
		return nil
	}
	inner := credentialFinder{decodings: f.decodings + 1}
	if first := skipSpace(text, 0); first < len(text) && (text[first] == '{' || text[first] == '[') && json.Valid(text) {
		inner.findInJSON(text, maxNesting)
	} else {
		inner.findInText(text)
	}
	return inner.spans
}

// findInHex decodes the letters and digits from i to end if they are hexadecimal. It adds them if the decoded text
// contains a credential.
func (f *credentialFinder) findInHex(t []byte, i, end int) (next int, found bool) {
	if f.decodings == maxEncodings {
		return end, false
	}
	from, to := findHexText(t[i:end])
	if to == 0 {
		return end, false
	}
	return f.findInHexBytes(t, i+from, i+to, i+from+2, 2)
}

// findInHexBytes adds the range if the bytes that it encodes contain a credential. The range consists of pairs of
// hexadecimal digits. The first pair ends at first, and each following pair ends one unit later.
func (f *credentialFinder) findInHexBytes(t []byte, from, to, first, unit int) (next int, found bool) {
	text := make([]byte, 0, (to-from)/unit+1)
	for i := first; i <= to; i += unit {
		text = append(text, parseHexByte(t[i-2:]))
	}
	if spans := f.findInDecoded(text); len(spans) > 0 {
		f.addSpan(t, from, to, spans[0].kind)
		return to, true
	}
	return to, false
}

// findAtBackslash examines the backslash at i. It may begin escapes that encode text, or an escape such as \n before a
// token. findAtBackslash returns the offset at which scanning continues.
func (f *credentialFinder) findAtBackslash(t []byte, i int) int {
	if end := hexEscapesEnd(t, i); end-i >= 4*minToken && f.decodings < maxEncodings {
		next, _ := f.findInHexBytes(t, i, end, i+4, 4)
		return next
	}
	if i+2 < len(t) {
		if end, _ := matchToken(t, i+2); end > 0 {
			return i + 2
		}
	}
	return i + 1
}

// findAtPercentEscape decodes the part of a URL around the escape at i, and adds the credentials in it. It
// returns the offset at which scanning continues.
func (f *credentialFinder) findAtPercentEscape(t []byte, i int) int {
	if _, ok := parsePercentEscape(t, i); !ok {
		return i + 1
	}
	if i < f.queryDoneTo || f.decodings == maxEncodings {
		return i + 3
	}
	low := 0
	if n := len(f.spans); n > 0 {
		low = f.spans[n-1].to
	}
	text, from, to := decodeQueryAround(nil, t, max(low, i-maxName), i)
	if f.queryDoneTo = to; !needsQueryDecoding(t[i:to]) {
		return i + 3
	}
	at, decoded := from, 0
	forward := func(target int) int {
		for ; decoded < target && at < to; decoded++ {
			if _, ok := parsePercentEscape(t, at); ok {
				at += 2
			}
			at++
		}
		return at
	}
	for _, s := range f.findInDecoded(text) {
		begin := forward(s.from)
		f.addSpan(t, begin, forward(s.to), s.kind)
	}
	if n := len(f.spans); n > 0 && f.spans[n-1].to > i {
		return f.spans[n-1].to
	}
	return i + 3
}
