package schema

import (
	"bytes"
	"math/bits"
	"strconv"
	"strings"
)

// number is an exact decimal: ± digits · 10^exp, with neither leading nor
// trailing zeros among the digits; zero has none. However large the exponent,
// no arithmetic here works on a number of that many digits.
type number struct {
	negative bool
	mantissa uint64 // the digits, when there are at most 19
	digits   []byte // else
	exp      int64
}

const (
	smallDigits = 19
	maxExponent = 1e15 // what is larger counts as this
)

// parseNumber reads a JSON number.
func parseNumber(s []byte) (n number) {
	if s[0] == '-' {
		n.negative = true
		s = s[1:]
	}
	if e := bytes.IndexAny(s, "eE"); e >= 0 {
		n.exp = exponent(s[e+1:])
		s = s[:e]
	}
	point := bytes.IndexByte(s, '.')
	if point >= 0 {
		n.exp -= int64(len(s) - point - 1)
	}
	if len(s) <= smallDigits {
		n.small(s)
	} else {
		n.large(s, point)
	}
	return n
}

func exponent(s []byte) int64 {
	e, negative := int64(0), false
	for _, c := range s {
		switch c {
		case '-':
			negative = true
		case '+':
		default:
			if e = e*10 + int64(c-'0'); e > maxExponent {
				e = maxExponent
			}
		}
	}
	if negative {
		return -e
	}
	return e
}

func (n *number) small(s []byte) {
	for _, c := range s {
		if c != '.' {
			n.mantissa = n.mantissa*10 + uint64(c-'0')
		}
	}
	if n.mantissa == 0 {
		*n = number{}
		return
	}
	for n.mantissa%10 == 0 {
		n.mantissa /= 10
		n.exp++
	}
}

func (n *number) large(s []byte, point int) {
	digits := s
	if point >= 0 {
		digits = append(append(make([]byte, 0, len(s)), s[:point]...), s[point+1:]...)
	}
	digits = bytes.TrimLeft(digits, "0")
	trimmed := bytes.TrimRight(digits, "0")
	n.exp += int64(len(digits) - len(trimmed))
	switch {
	case len(trimmed) == 0:
		*n = number{}
	case len(trimmed) <= smallDigits:
		n.mantissa, _ = strconv.ParseUint(string(trimmed), 10, 64)
	default:
		n.digits = trimmed
	}
}

func (n *number) isZero() bool    { return n.mantissa == 0 && n.digits == nil }
func (n *number) isInteger() bool { return n.exp >= 0 }

// appendDigits gives the digits.
func (n *number) appendDigits(dst []byte) []byte {
	if n.digits != nil {
		return append(dst, n.digits...)
	}
	return strconv.AppendUint(dst, n.mantissa, 10)
}

// compare gives -1, 0 or 1 as a is less than, equal to or greater than b.
func (a *number) compare(b *number) int {
	switch {
	case a.isZero() && b.isZero():
		return 0
	case a.isZero():
		return -b.sign()
	case b.isZero() || a.negative != b.negative:
		return a.sign()
	}
	return a.sign() * a.compareMagnitude(b)
}

func (n *number) sign() int {
	if n.negative {
		return -1
	}
	return 1
}

func (a *number) compareMagnitude(b *number) int {
	if a.exp == b.exp && a.digits == nil && b.digits == nil {
		return compareOrdered(a.mantissa, b.mantissa)
	}
	var bufA, bufB [smallDigits + 1]byte
	x, y := a.digits, b.digits
	if x == nil {
		x = a.appendDigits(bufA[:0])
	}
	if y == nil {
		y = b.appendDigits(bufB[:0])
	}
	// The number of digits before the point decides, then the digits.
	if c := compareOrdered(int64(len(x))+a.exp, int64(len(y))+b.exp); c != 0 {
		return c
	}
	return bytes.Compare(x, y)
}

func compareOrdered[T int64 | uint64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// multipleOf says whether a is a whole multiple of b, which is positive and
// has at most 19 digits. It computes with remainders only.
func (a *number) multipleOf(b *number) bool {
	if a.isZero() {
		return true
	}
	// a = x·10^p, b = y·10^q. Neither x nor y ends in a zero, so that for p < q
	// ten would have to divide x.
	if a.exp < b.exp {
		return false
	}
	y := b.mantissa
	r := uint64(0)
	if a.digits == nil {
		r = a.mantissa % y
	} else {
		for _, c := range a.digits {
			hi, lo := bits.Mul64(r, 10)
			lo, carry := bits.Add64(lo, uint64(c-'0'), 0)
			r = bits.Rem64(hi+carry, lo, y)
		}
	}
	return mulMod(r, powMod(10, uint64(a.exp-b.exp), y), y) == 0
}

func mulMod(a, b, m uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, m)
}

func powMod(base, exp, m uint64) uint64 {
	result := 1 % m
	base %= m
	for ; exp > 0; exp >>= 1 {
		if exp&1 == 1 {
			result = mulMod(result, base, m)
		}
		base = mulMod(base, base, m)
	}
	return result
}

// count gives the number as a count that is used for lengths: what is larger
// than any length is the largest int32. It is false for what is no whole,
// not negative number.
func (n *number) count() (int, bool) {
	const most = 1<<31 - 1
	switch {
	case n.isZero():
		return 0, true
	case n.negative || !n.isInteger():
		return 0, false
	case n.digits != nil || n.exp > 9 || n.mantissa > most:
		return most, true
	}
	v := n.mantissa
	for range n.exp {
		if v *= 10; v > most {
			return most, true
		}
	}
	return int(v), true
}

// String writes a number of the schema as messages show it.
func (n *number) String() string {
	if n.isZero() {
		return "0"
	}
	text := string(n.appendDigits(nil))
	switch point := len(text) + int(min(max(n.exp, -100), 100)); {
	case n.exp >= 0 && n.exp <= 20:
		text += strings.Repeat("0", int(n.exp))
	case n.exp < 0 && point > 0:
		text = text[:point] + "." + text[point:]
	case n.exp < 0 && point > -6:
		text = "0." + strings.Repeat("0", -point) + text
	default:
		text += "e" + strconv.FormatInt(n.exp, 10)
	}
	if n.negative {
		return "-" + text
	}
	return text
}
