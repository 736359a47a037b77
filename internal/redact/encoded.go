package redact

import (
	"encoding/json"
)

// inside looks for credentials in what a part of the text stands for, which is
// JSON or plain text, and returns what is found there.
func (f *finder) inside(text []byte) []span {
	if !suspicious(text) {
		return nil
	}
	inner := finder{encodings: f.encodings + 1}
	if first := skipSpace(text, 0); first < len(text) && (text[first] == '{' || text[first] == '[') && json.Valid(text) {
		inner.json(text, maxNesting)
	} else {
		inner.text(text)
	}
	return inner.spans
}

// Bytes in hexadecimal, and the escapes of programs and of URLs.

const minHex = 2 * minToken // digits of the shortest token

// hexText returns where in a run of letters and digits the hexadecimal digits
// are that stand for text as long as the shortest token, or 0, 0.
func hexText(run []byte) (from, to int) {
	for i := 0; i+minHex <= len(run); {
		if before := runStart(run, i, i+minHex, hexAny); before > i {
			i = before
			continue
		}
		end := runEnd(run, i+minHex, hexAny)
		for first := range 2 {
			if digits := run[i+first : end-(end-i-first)%2]; spellsText(digits) {
				return i + first, i + first + len(digits)
			}
		}
		i = end
	}
	return 0, 0
}

// spellsText reports whether enough pairs of hexadecimal digits side by side stand
// for text. Of those it looks at the last one first.
func spellsText(digits []byte) bool {
	for i := 0; i+minHex <= len(digits); {
		last := minToken - 1
		for last >= 0 && isText(hexByte(digits[i+2*last:])) {
			last--
		}
		if last < 0 {
			return true
		}
		i += 2 * (last + 1)
	}
	return false
}

func isText(c byte) bool { return printable(c) || c == '\n' || c == '\r' || c == '\t' }

// hexByte returns the byte that text begins with in hexadecimal.
func hexByte(text []byte) byte { return hexDigit(text[0])<<4 | hexDigit(text[1]) }

func hexDigit(c byte) byte {
	if c > '9' {
		return c&7 + 9
	}
	return c & 15
}

// atHex looks at the letters and digits at i to end, which may be hexadecimal
// digits, and masks them when a credential is in what they stand for.
func (f *finder) atHex(t []byte, i, end int) (next int, found bool) {
	if f.encodings == maxEncodings {
		return end, false
	}
	from, to := hexText(t[i:end])
	if to == 0 {
		return end, false
	}
	return f.bytesIn(t, i+from, i+to, i+from+2, 2)
}

// bytesIn masks what stands from to to when a credential is in the bytes that it
// stands for: of pairs of hexadecimal digits, the first of which ends at first and
// each other one unit further on.
func (f *finder) bytesIn(t []byte, from, to, first, unit int) (next int, found bool) {
	text := make([]byte, 0, (to-from)/unit+1)
	for i := first; i <= to; i += unit {
		text = append(text, hexByte(t[i-2:]))
	}
	if spans := f.inside(text); len(spans) > 0 {
		f.add(t, from, to, spans[0].kind)
		return to, true
	}
	return to, false
}

// dumped returns the end of the pairs of hexadecimal digits with blanks between
// them that begin at i, of which there are to be so many that stand for text; or 0.
func dumped(t []byte, i, least int) int {
	n := 0
	for i+2 <= len(t) && has(t[i], hexAny) && has(t[i+1], hexAny) && (i+2 == len(t) || !has(t[i+2], alnum)) {
		if !isText(hexByte(t[i:])) {
			return 0
		}
		n++
		if i += 3; i > len(t) || t[i-1] != ' ' {
			break
		}
	}
	if n < least {
		return 0
	}
	return i - 1
}

// escapedBytes returns the end of the escapes \x41 that begin at i.
func escapedBytes(t []byte, i int) int {
	for i+4 <= len(t) && t[i] == '\\' && t[i+1] == 'x' && has(t[i+2], hexAny) && has(t[i+3], hexAny) {
		i += 4
		if i+1 < len(t) && t[i] == '\\' && t[i+1] == '\\' { // in JSON
			i++
		}
	}
	return i
}

// afterBackslash looks at the backslash i: at escapes that stand for a text, and
// at a token that follows an escape such as \n. It returns the place to go on from.
func (f *finder) afterBackslash(t []byte, i int) int {
	if end := escapedBytes(t, i); end-i >= 4*minToken && f.encodings < maxEncodings {
		next, _ := f.bytesIn(t, i, end, i+4, 4)
		return next
	}
	if i+2 < len(t) {
		if end, _ := matchToken(t, i+2); end > 0 {
			return i + 2
		}
	}
	return i + 1
}

// Escapes of URLs, as %3D.

const inQuery = alnum | under | dash | dot // and % + ~

func isQuery(c byte) bool { return has(c, inQuery) || c == '%' || c == '+' || c == '~' }

// percentByte returns what the escape at i stands for.
func percentByte(t []byte, i int) (byte, bool) {
	if i+3 > len(t) || t[i] != '%' || !has(t[i+1], hexAny) || !has(t[i+2], hexAny) {
		return 0, false
	}
	return hexByte(t[i+1:]), true
}

// query returns the part of a URL around i, not before low, and appends to dst
// what it stands for.
func query(dst, t []byte, low, i int) (text []byte, from, to int) {
	from = i
	for from > low && isQuery(t[from-1]) {
		from--
	}
	from = pastEscapeStart(t, from, i)
	for to = from; to < len(t) && isQuery(t[to]); to++ {
		switch c, ok := percentByte(t, to); {
		case ok:
			dst, to = append(dst, c), to+2
		case t[to] == '+':
			dst = append(dst, ' ')
		default:
			dst = append(dst, t[to])
		}
	}
	return dst, from, to
}

// atPercent looks at the escape of a URL at i, with what stands around it, and
// masks the credentials in what that stands for. It returns the place to go on
// from.
func (f *finder) atPercent(t []byte, i int) int {
	if _, ok := percentByte(t, i); !ok {
		return i + 1
	}
	if i < f.decoded || f.encodings == maxEncodings {
		return i + 3
	}
	low := 0
	if n := len(f.spans); n > 0 {
		low = f.spans[n-1].to
	}
	text, from, to := query(nil, t, max(low, i-maxName), i)
	if f.decoded = to; !dense(t[i:to]) {
		return i + 3
	}
	at, decoded := from, 0
	forward := func(target int) int {
		for ; decoded < target && at < to; decoded++ {
			if _, ok := percentByte(t, at); ok {
				at += 2
			}
			at++
		}
		return at
	}
	for _, s := range f.inside(text) {
		begin := forward(s.from)
		f.add(t, begin, forward(s.to), s.kind)
	}
	if n := len(f.spans); n > 0 && f.spans[n-1].to > i {
		return f.spans[n-1].to
	}
	return i + 3
}

// dense reports whether a part of a URL holds what the quick test stops at: escapes
// side by side, or a long word behind one.
func dense(t []byte) bool {
	const aside = 5
	n, word := 0, 0
	for i := 0; i < len(t); i++ {
		if t[i] == '%' {
			if word != 2 {
				n = 0
			}
			n, word = n+1, 0
			continue
		}
		if word++; n > 0 && (word >= minToken || n >= aside && word == 2) {
			return true
		}
	}
	return false
}

// percent reports whether what stands around the escape of a URL at i hides
// something, and where that ends.
func percent(b []byte, i, depth int) (end int, found bool) {
	const deepest = 4
	if _, ok := percentByte(b, i); !ok {
		return i, false
	}
	var buffer [512]byte
	text, _, end := query(buffer[:0], b, max(0, i-4*maxName), i)
	return end, depth == deepest || suspiciousAt(text, depth+1)
}
