package wirejson

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

const (
	inlineNames = 64 // number of names of open objects that need no allocation
	inlineDepth = 64
	inArray     = -1 // the frame of an array
	failed      = -1 // means that there is no offset
)

// Error describes an error by its position and reason. Offset counts bytes.
type Error struct {
	Offset int
	Reason string
	// Limit is set if the text exceeds a limit on size or depth. It may be valid JSON.
	Limit bool
}

// Error returns offset and reason as one sentence.
func (e *Error) Error() string {
	what := "invalid JSON at byte "
	if e.Limit {
		what = "JSON over the limit at byte "
	}
	return what + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// scanner checks one value, iteratively. Its stacks are arrays of the callers, passed by value so that they stay off
// the heap. frames contains the open containers, and names the member names of the open objects.
type scanner struct {
	data      []byte
	depth     int
	strict    bool
	tables    []nameTable // name tables of open objects with many members
	seed      [2]uint64   // seed of the name hashes, against prepared collisions
	at        int         // offset of the error
	reason    string
	overLimit bool
}

// memberName is a member name of an open object: its offsets between the quotes, and the hash of its folded
// text.
type memberName struct {
	start, end int
	hash       uint64
}

// nameTable is the hash table for the object at a level (open addressing). A slot contains the 1-based index of a name.
type nameTable struct {
	level int
	slots []uint32
}

func (s *scanner) failAt(at int, reason string) int {
	s.at, s.reason = at, reason
	return failed
}

func (s *scanner) toError() *Error { return &Error{s.at, s.reason, s.overLimit} }

// scanValue scans the value at i and returns the offset after it. A frame is inArray, or the index of the
// object's first name in names.
func (s *scanner) scanValue(i int, frames []int, names []memberName) int {
	d := s.data
	var top, start int
value:
	if i >= len(d) {
		return s.failAt(len(d), "the text ends where a value is expected")
	}
	switch c := d[i]; c {
	case '"':
		i = s.scanString(i + 1)
	case '{', '[':
		if len(frames) >= s.depth {
			return s.failTooDeep(i)
		}
		i = skipSpace(d, i+1)
		if i < len(d) && d[i] == c+2 { // the codes of } and ] are 2 above { and [
			i++
			break
		}
		if c == '[' {
			frames = append(frames, inArray)
			goto value
		}
		frames = append(frames, len(names))
		goto member
	case 't':
		i = s.scanLiteral(i, "true")
	case 'f':
		i = s.scanLiteral(i, "false")
	case 'n':
		i = s.scanLiteral(i, "null")
	default:
		i = s.scanNumber(i)
	}
after:
	top = len(frames) - 1
	if i < 0 || top < 0 {
		return i
	}
	i = skipSpace(d, i)
	if i >= len(d) {
		return s.failAt(i, "the text ends inside an array or object")
	}
	switch base := frames[top]; {
	case d[i] == ',':
		i = skipSpace(d, i+1)
		if base == inArray {
			goto value
		}
		goto member
	case d[i] == ']' && base == inArray:
		frames = frames[:top]
		i++
		goto after
	case d[i] == '}' && base != inArray:
		frames, names = frames[:top], names[:base]
		s.dropNameTable(top)
		i++
		goto after
	case base == inArray:
		return s.failAt(i, "expected a comma or the end of the array")
	}
	return s.failAt(i, "expected a comma or the end of the object")
member:
	if i >= len(d) || d[i] != '"' {
		return s.failAt(i, "expected a member name in double quotes")
	}
	start = i + 1
	if i = s.scanString(start); i < 0 {
		return failed
	}
	if s.strict {
		top = len(frames) - 1
		n, fine := s.readUniqueName(start, i-1, top, names[frames[top]:])
		if !fine {
			return failed
		}
		names = append(names, n)
	}
	if i = skipSpace(d, i); i >= len(d) || d[i] != ':' {
		return s.failAt(i, "expected a colon after the member name")
	}
	i = skipSpace(d, i+1)
	goto value
}

// skipValue scans a value without its names, and without a stack for scalars.
func (s *scanner) skipValue(i int) int {
	if i < len(s.data) && (s.data[i] == '{' || s.data[i] == '[') {
		var frames [inlineDepth]int
		return s.scanValue(i, frames[:0], nil)
	}
	return s.scanValue(i, nil, nil)
}

func (s *scanner) failTooDeep(i int) int {
	s.overLimit = true
	return s.failAt(i, "arrays and objects are nested deeper than "+strconv.Itoa(s.depth)+" levels")
}

func (s *scanner) scanLiteral(i int, word string) int {
	if end := i + len(word); end <= len(s.data) && string(s.data[i:end]) == word {
		return end
	}
	return s.failAt(i, "expected a value")
}

// scanNumber scans -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?.
func (s *scanner) scanNumber(start int) int {
	d, i := s.data, start
	if d[i] == '-' {
		i++
	}
	whole := skipDigits(d, i)
	switch {
	case whole == i && i == start:
		return s.failAt(i, "expected a value")
	case whole == i:
		return s.failAt(i, "expected a digit after the minus sign")
	case d[i] == '0' && whole > i+1:
		return s.failAt(i, "a number has a leading zero")
	}
	i = whole
	if i < len(d) && d[i] == '.' {
		end := skipDigits(d, i+1)
		if end == i+1 {
			return s.failAt(end, "expected a digit after the decimal point")
		}
		i = end
	}
	exponent := i < len(d) && d[i]|0x20 == 'e'
	if exponent {
		if i++; i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		end := skipDigits(d, i)
		if end == i {
			return s.failAt(end, "expected a digit in the exponent")
		}
		i = end
	}
	// Without an exponent, 308 digits are below the largest float64.
	if s.strict && (exponent || i-start > 308) && exceedsFloat64(d[start:i]) {
		return s.failAt(start, "a number is too large for a 64-bit float")
	}
	return i
}

func skipDigits(d []byte, i int) int {
	for i < len(d) && d[i]-'0' <= 9 {
		i++
	}
	return i
}

// exceedsFloat64 reports whether a number exceeds float64. Parsers treat such numbers differently (infinity, error,
// exact value).
func exceedsFloat64(number []byte) bool {
	_, err := strconv.ParseFloat(unsafe.String(&number[0], len(number)), 64)
	return err != nil
}

// scanString scans a string. i is the offset after the opening quote. It returns the offset after the closing quote. It
// processes eight bytes at a time, including quotes and simple escapes.
func (s *scanner) scanString(i int) int {
	d := s.data
	var keep uint64
	if s.strict {
		keep = high
	}
words:
	for i+8 <= len(d) {
		x := binary.LittleEndian.Uint64(d[i:])
		next := i + 8
		for m := markSpecialBytes(x, keep); m != 0; {
			k := bits.TrailingZeros64(m) &^ 7
			switch c := byte(x >> k); {
			case c == '"':
				return i + k>>3 + 1
			case c == '\\' && k < 56 && isSimpleEscape(byte(x>>k>>8)):
				m &^= 0x8080 << k
			case c == '\\' && k == 56 && next < len(d) && isSimpleEscape(d[next]):
				next++
				m = 0
			default:
				if i = s.scanStringChar(i + k>>3); i < 0 {
					return failed
				}
				continue words
			}
		}
		i = next
	}
	for i < len(d) && d[i] != '"' {
		if i = s.scanStringChar(i); i < 0 {
			return failed
		}
	}
	if i >= len(d) {
		return s.failAt(len(d), "the text ends inside a string")
	}
	return i + 1
}

// scanStringChar scans one character of a string, other than the closing quote.
func (s *scanner) scanStringChar(i int) int {
	switch c := s.data[i]; {
	case c == '\\':
		return s.scanEscape(i)
	case c < ' ':
		return s.failAt(i, "a string contains an unescaped control character")
	case c >= utf8.RuneSelf && s.strict:
		return s.scanNonASCII(i)
	}
	return i + 1
}

const ones, high = 0x0101010101010101, 0x8080808080808080

// markSpecialBytes sets the high bits of the bytes of x that are a quote, a backslash, a control character or, if
// keep is high, non-ASCII.
func markSpecialBytes(x, keep uint64) uint64 {
	// Without its high bit no byte carries into the next: the additions set the high bit of bytes that are
	// not special. x^2 maps the quote (0x22) to 0x20, so one addition finds it and the controls.
	y := x &^ high
	rest := ((y ^ ones*2) + ones*(0x80-0x21)) & ((y ^ ones*'\\') + ones*0x7f)
	return ^(rest|x)&high | x&keep
}

// isSimpleEscape reports whether c is one of "\/bfnrt.
func isSimpleEscape(c byte) bool {
	const low = 1<<'"' | 1<<'/'
	const rest = 1<<('\\'-64) | 1<<('b'-64) | 1<<('f'-64) | 1<<('n'-64) | 1<<('r'-64) | 1<<('t'-64)
	set := uint64(low)
	if c >= 64 {
		set = rest
	}
	return c < 128 && set>>(c&63)&1 != 0
}

func (s *scanner) scanNonASCII(i int) int {
	for d := s.data; i < len(d) && d[i] >= utf8.RuneSelf; {
		r, n := utf8.DecodeRune(d[i:])
		if r == utf8.RuneError && n == 1 {
			return s.failAt(i, "a string is not valid UTF-8")
		}
		i += n
	}
	return i
}

// scanEscape scans the escape sequence at i.
func (s *scanner) scanEscape(i int) int {
	d := s.data
	switch {
	case i+1 >= len(d):
		return s.failAt(len(d), "the text ends inside a string")
	case isSimpleEscape(d[i+1]):
		return i + 2
	case d[i+1] != 'u':
		return s.failAt(i, "an escape sequence is unknown")
	}
	r := decodeHex4(d, i+2)
	switch {
	case r < 0:
		return s.failAt(i, "\\u is not followed by four hexadecimal digits")
	case !s.strict || r < surrogates || r >= surrogatesEnd:
		return i + 6
	case r < lowSurrogates && i+7 < len(d) && d[i+6] == '\\' && d[i+7] == 'u':
		if low := decodeHex4(d, i+8); low >= lowSurrogates && low < surrogatesEnd {
			return i + 12
		}
	}
	return s.failAt(i, "a string contains a single surrogate")
}

const (
	surrogates    = 0xd800
	lowSurrogates = 0xdc00
	surrogatesEnd = 0xe000
)

// decodeHex4 decodes four hexadecimal digits. It returns -1 if they are invalid.
func decodeHex4(d []byte, i int) rune {
	if i+4 > len(d) {
		return -1
	}
	var r rune
	for _, c := range d[i : i+4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20-'a' <= 5:
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

func skipSpace(d []byte, i int) int {
	for i < len(d) && (d[i] == ' ' || d[i] == '\n' || d[i] == '\t' || d[i] == '\r') {
		i++
	}
	return i
}
