package redact

// What is encoded as base64 hides a credential from the table of tokens. A
// token is letters, digits and a few signs, and the base64 of these has letters
// and digits alone, in both alphabets. So only runs of these are looked at, and
// closely only those that stand for text in one of the four ways to begin.

const (
	minEncoded   = 20 // characters of the shortest token
	textGroups   = 4  // whole groups of four characters in it
	maxEncodings = 2  // base64 within base64
	lineOfMail   = 60 // characters of a line that goes on in the next one
)

const noValue = 64

// sextets are the values of the characters of both alphabets.
var sextets = func() (t [256]byte) {
	for c := range t {
		t[c] = noValue
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(letters) {
		t[letters[i]] = byte(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}()

// encodesText reports whether a run of letters and digits holds the base64 of
// printable text as long as the shortest token, wherever in it that begins.
func encodesText(run []byte) bool {
	return textFrom(run, 0) || textFrom(run, 1) || textFrom(run, 2) || textFrom(run, 3)
}

// textFrom is encodesText for groups of four that begin at first. Of the groups
// that are wanted side by side it looks at the last one first.
func textFrom(run []byte, first int) bool {
	for i := first; i+4*textGroups <= len(run); {
		last := textGroups - 1
		for last >= 0 && encodesThree(run[i+4*last:]) {
			last--
		}
		if last < 0 {
			return true
		}
		i += 4 * (last + 1)
	}
	return false
}

// encodesThree reports whether four characters are the base64 of three that are
// printable.
func encodesThree(group []byte) bool {
	a := sextets[group[0]]
	if a < ' '>>2 || a > '~'>>2 {
		return false
	}
	b, c, d := sextets[group[1]], sextets[group[2]], sextets[group[3]]
	return printable(b<<4|c>>2) && printable(c<<6|d)
}

func printable(c byte) bool { return c >= ' ' && c <= '~' }

// encoded is base64 that is being looked at.
type encoded struct {
	at, to int
	count  int   // characters before at, without the ends of lines
	tried  uint8 // ways to begin, as bits
}

// begin reports whether the base64 around i has not been decoded in this way
// yet: each is, once, so that the time stays linear.
func (e *encoded) begin(t []byte, i, first int) bool {
	if i >= e.to {
		*e = encoded{at: i, to: encodedEnd(t, i)}
	}
	for ; e.at < i; e.at++ {
		if t[e.at] != '\n' && t[e.at] != '\r' {
			e.count++
		}
	}
	way := uint8(1) << ((e.count + first) % 4)
	if e.tried&way != 0 {
		return false
	}
	e.tried |= way
	return true
}

// encodedEnd returns the end of the base64 that begins at i, over the ends of
// its lines and without its padding.
func encodedEnd(t []byte, i int) int {
	const set = base64 &^ equals
	for {
		end := runEnd(t, i, set)
		next := end
		for next < len(t) && (t[next] == '\n' || t[next] == '\r') {
			next++
		}
		if end-i < lineOfMail || next == end || next == len(t) || !has(t[next], set) {
			return end
		}
		i = next
	}
}

// decode returns what base64 stands for when its first characters are left out.
func decode(text []byte, first int) []byte {
	out := make([]byte, 0, len(text)*3/4)
	group, n := uint32(0), 0
	for _, c := range text[min(first, len(text)):] {
		v := sextets[c]
		if v == noValue {
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
