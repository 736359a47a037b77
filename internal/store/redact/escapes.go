package redact

// This file decodes hexadecimal bytes, and the escape sequences of source code and URLs.

const minHex = 2 * minToken // the number of digits that encode the shortest token

// findHexText returns the range of hexadecimal digits, in a run of letters and digits, that encode text as long as the
// shortest token. It returns 0, 0 if there is none.
func findHexText(run []byte) (from, to int) {
	for i := 0; i+minHex <= len(run); {
		if before := runStart(run, i, i+minHex, hexAny); before > i {
			i = before
			continue
		}
		end := runEnd(run, i+minHex, hexAny)
		for first := range 2 {
			if digits := run[i+first : end-(end-i-first)%2]; hexEncodesText(digits) {
				return i + first, i + first + len(digits)
			}
		}
		i = end
	}
	return 0, 0
}

// hexEncodesText reports whether enough consecutive pairs of hexadecimal digits encode text. It checks the last pair
// first.
func hexEncodesText(digits []byte) bool {
	for i := 0; i+minHex <= len(digits); {
		last := minToken - 1
		for last >= 0 && isTextByte(parseHexByte(digits[i+2*last:])) {
			last--
		}
		if last < 0 {
			return true
		}
		i += 2 * (last + 1)
	}
	return false
}

func isTextByte(c byte) bool { return isPrintable(c) || c == '\n' || c == '\r' || c == '\t' }

// parseHexByte returns the byte of the two hexadecimal digits at the beginning of text.
func parseHexByte(text []byte) byte { return hexDigitValue(text[0])<<4 | hexDigitValue(text[1]) }

func hexDigitValue(c byte) byte {
	if c > '9' {
		return c&7 + 9
	}
	return c & 15
}

// hexDumpEnd returns the end of the pairs of hexadecimal digits that begin at i, are separated by spaces and encode
// text. It returns 0 if there are fewer pairs than least.
func hexDumpEnd(t []byte, i, least int) int {
	n := 0
	for i+2 <= len(t) && inCharSet(t[i], hexAny) && inCharSet(t[i+1], hexAny) && (i+2 == len(t) || !inCharSet(t[i+2], alnum)) {
		if !isTextByte(parseHexByte(t[i:])) {
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

// hexEscapesEnd returns the end of the escapes such as \x41 that begin at i.
func hexEscapesEnd(t []byte, i int) int {
	for i+4 <= len(t) && t[i] == '\\' && t[i+1] == 'x' && inCharSet(t[i+2], hexAny) && inCharSet(t[i+3], hexAny) {
		i += 4
		if i+1 < len(t) && t[i] == '\\' && t[i+1] == '\\' { // in JSON
			i++
		}
	}
	return i
}

// The following functions decode the escapes of URLs, such as %3D.

const queryChars = alnum | under | dash | dot // and % + ~

func isQueryChar(c byte) bool { return inCharSet(c, queryChars) || c == '%' || c == '+' || c == '~' }

// parsePercentEscape returns the byte of the escape at i.
func parsePercentEscape(t []byte, i int) (byte, bool) {
	if i+3 > len(t) || t[i] != '%' || !inCharSet(t[i+1], hexAny) || !inCharSet(t[i+2], hexAny) {
		return 0, false
	}
	return parseHexByte(t[i+1:]), true
}

// decodeQueryAround appends the decoded part of the URL around i to dst, and returns it with its range. The range does
// not begin before low.
func decodeQueryAround(dst, t []byte, low, i int) (text []byte, from, to int) {
	from = i
	for from > low && isQueryChar(t[from-1]) {
		from--
	}
	from = skipEscapeRest(t, from, i)
	for to = from; to < len(t) && isQueryChar(t[to]); to++ {
		switch c, ok := parsePercentEscape(t, to); {
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

// needsQueryDecoding reports whether a part of a URL has several escapes in a row, or a long word after an escape. The
// quick test cannot handle these without decoding.
func needsQueryDecoding(t []byte) bool {
	const aside = 5
	n, word := 0, 0
	for i := 0; i < len(t); i++ {
		if t[i] == '%' {
			_, escape := parsePercentEscape(t, i)
			if word != 2 || !escape {
				n = 0
			}
			if word = 0; escape {
				n++
			}
			continue
		}
		if word++; n > 0 && (word >= minToken || n >= aside && word == 2) {
			return true
		}
	}
	return false
}
