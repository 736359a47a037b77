package redact

// In base64, a credential does not match the table of tokens. Tokens consist of letters, digits and a few symbols.
// Their base64 consists only of letters and digits, in both alphabets. So only runs of letters and digits are examined.
// They are decoded only if they encode text at one of the four possible offsets.

const (
	minBase64      = 20 // characters of the shortest token
	textGroups     = 4  // whole groups of four characters in the shortest token
	maxEncodings   = 2  // base64 within base64
	minWrappedLine = 60 // minimum length of a line that is continued on the next line
)

const noSextet = 64

// sextets maps the characters of both alphabets to their values.
var sextets = func() (t [256]byte) {
	for c := range t {
		t[c] = noSextet
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(letters) {
		t[letters[i]] = byte(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}()

// holdsBase64Text reports whether a run of letters and digits contains the base64 of printable text that is at least as
// long as the shortest token, at any offset.
func holdsBase64Text(run []byte) bool {
	return holdsBase64TextFrom(run, 0) || holdsBase64TextFrom(run, 1) || holdsBase64TextFrom(run, 2) || holdsBase64TextFrom(run, 3)
}

// holdsBase64TextFrom does the same for groups of four that begin at first. It checks the last of the required
// consecutive groups first.
func holdsBase64TextFrom(run []byte, first int) bool {
	for i := first; i+4*textGroups <= len(run); {
		last := textGroups - 1
		for last >= 0 && isPrintableGroup(run[i+4*last:]) {
			last--
		}
		if last < 0 {
			return true
		}
		i += 4 * (last + 1)
	}
	return false
}

// isPrintableGroup reports whether four characters are the base64 of three printable characters.
func isPrintableGroup(group []byte) bool {
	a := sextets[group[0]]
	if a < ' '>>2 || a > '~'>>2 {
		return false
	}
	b, c, d := sextets[group[1]], sextets[group[2]], sextets[group[3]]
	return isPrintable(b<<4|c>>2) && isPrintable(c<<6|d)
}

func isPrintable(c byte) bool { return c >= ' ' && c <= '~' }

// base64Run is the base64 text that is being examined.
type base64Run struct {
	at, to       int
	count        int   // characters before at, without line ends
	triedOffsets uint8 // offsets that were decoded, as bits
}

// markOffsetTried reports whether the base64 around i still has to be decoded at this offset. Each offset is
// decoded once, so that the time stays linear.
func (e *base64Run) markOffsetTried(t []byte, i, first int) bool {
	if i >= e.to {
		*e = base64Run{at: i, to: base64End(t, i)}
	}
	for ; e.at < i; e.at++ {
		if t[e.at] != '\n' && t[e.at] != '\r' {
			e.count++
		}
	}
	way := uint8(1) << ((e.count + first) % 4)
	if e.triedOffsets&way != 0 {
		return false
	}
	e.triedOffsets |= way
	return true
}

// base64End returns the end of the base64 that begins at i, across line ends and without padding.
func base64End(t []byte, i int) int {
	const set = base64 &^ equals
	for {
		end := runEnd(t, i, set)
		next := end
		for next < len(t) && (t[next] == '\n' || t[next] == '\r') {
			next++
		}
		if end-i < minWrappedLine || next == end || next == len(t) || !inCharSet(t[next], set) {
			return end
		}
		i = next
	}
}

// decodeBase64From decodes base64 after skipping the first characters.
func decodeBase64From(text []byte, first int) []byte {
	out := make([]byte, 0, len(text)*3/4)
	group, n := uint32(0), 0
	for _, c := range text[min(first, len(text)):] {
		v := sextets[c]
		if v == noSextet {
			continue
		}
		group = group<<6 | uint32(v)
		if n++; n == 4 {
			out, group, n = append(out, byte(group>>16), byte(group>>8), byte(group)), 0, 0
		}
	}
	switch n {
	case 2:
		out = append(out, byte(group>>4))
	case 3:
		out = append(out, byte(group>>10), byte(group>>2))
	}
	return out
}
