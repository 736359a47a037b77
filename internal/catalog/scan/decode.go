package scan

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minBlob is the minimum length of encoded text.
const minBlob = 12

// decodeEncodedText finds and decodes encoded text in a view.
func (s *scanner) decodeEncodedText(v *textView) []textView {
	var views []textView
	t := v.n.cased
	for i := 0; i < len(t); {
		if !isBase64Byte(t[i]) {
			i++
			continue
		}
		end := i
		for end < len(t) && isBase64Byte(t[end]) {
			end++
		}
		if end-i >= minBlob && isLikelyEncoded(t[i:end]) {
			for end < len(t) && t[end] == '=' {
				end++
			}
			if text, name := decodeBlob(t[i:end]); name != "" {
				views = append(views, s.newDecodedViews(v, text, name, i, end)...)
			}
		}
		i = end
	}
	if countDigits(t) < 8 {
		return views
	}
	for _, list := range []struct {
		name  string
		base  int
		digit func(byte) bool
		size  [2]int
	}{{"hexadecimal digits", 16, isHexDigit, [2]int{2, 2}}, {"character codes", 10, isDigit, [2]int{2, 3}}, {"binary digits", 2, isBinaryDigit, [2]int{7, 8}}} {
		for i := 0; i < len(t); {
			text, end := decodeNumberList(t, i, list.base, list.digit, list.size)
			if len(text) >= 6 && isMostlyPrintable(text) {
				views = append(views, s.newDecodedViews(v, text, list.name, i, end)...)
			}
			i = max(end, i+1)
		}
	}
	return views
}

func (s *scanner) newDecodedViews(v *textView, text []byte, name string, start, end int) []textView {
	if s.decoded += len(text); s.decoded > maxDecoded {
		if s.decoded-len(text) <= maxDecoded {
			s.addTooLargeFinding("", "the definition has more than "+strconv.Itoa(maxDecoded)+" bytes of encoded text; the rest was not scanned")
		}
		return nil
	}
	from, to := v.fieldSpan(start, end)
	return []textView{newDecodedView(v, text, name, span{from, to})}
}

// newDecodedView returns the view of a decoded text.
func newDecodedView(of *textView, text []byte, name string, hidden span) textView {
	if of.encoding != "" {
		name += " in " + of.encoding
	}
	v := textView{encoding: name, hidden: hidden, depth: of.depth + 1}
	v.n.normalize(string(text))
	return v
}

func isBase64Byte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '+' || c == '/' || c == '-' || c == '_'
}

// isLikelyEncoded reports whether a run of letters and digits is not just a word.
func isLikelyEncoded(blob []byte) bool {
	small, capital, digit := 0, 0, 0
	for _, c := range blob {
		switch {
		case c >= 'a':
			small++
		case c >= 'A':
			capital++
		default:
			digit++
		}
	}
	return digit > 1 || capital > 1 && small > 1 || small == 0
}

func countDigits(t []byte) int {
	n := 0
	for _, c := range t {
		if isDigit(c) {
			n++
		}
	}
	return n
}

// decodeBlob decodes hexadecimal, base32 or base64 text; name is "" if it is none.
func decodeBlob(blob []byte) (text []byte, name string) {
	plain := strings.TrimRight(string(blob), "=")
	if len(plain)%2 == 0 {
		if text, err := hex.DecodeString(strings.TrimPrefix(plain, "0x")); err == nil && isMostlyPrintable(text) {
			return text, "hexadecimal digits"
		}
	}
	if plain == strings.ToUpper(plain) && len(plain) >= 16 {
		if text, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(plain); err == nil && isMostlyPrintable(text) {
			return text, "base32"
		}
	}
	standard := strings.NewReplacer("-", "+", "_", "/").Replace(plain)
	if probe := min(len(standard), 64) &^ 3; !isBase64OfText(standard[:probe]) {
		return nil, ""
	}
	if len(standard)%4 == 1 {
		standard = standard[:len(standard)-1]
	}
	if text, err := base64.RawStdEncoding.DecodeString(standard); err == nil && isMostlyPrintable(text) {
		return text, "base64"
	}
	return nil, ""
}

// isBase64OfText reports whether base64 starts like encoded text, unlike most icons and
// long words.
func isBase64OfText(blob string) bool {
	var first [48]byte
	n, err := base64.RawStdEncoding.Decode(first[:], []byte(blob))
	return err == nil && (isMostlyPrintable(first[:n]) || n >= 3 && !utf8.Valid(first[:n]) && isMostlyPrintable(first[:n-2]))
}

// isMostlyPrintable reports whether decoded bytes are mostly printable UTF-8.
func isMostlyPrintable(b []byte) bool {
	if len(b) < 6 || !utf8.Valid(b) {
		return false
	}
	odd, letters := 0, 0
	for _, r := range string(b) {
		switch {
		case unicode.IsLetter(r):
			letters++
		case r != '\n' && r != '\t' && r != '\r' && !unicode.IsPrint(r):
			odd++
		}
	}
	return odd*20 <= len(b) && letters*5 >= utf8.RuneCount(b)
}

// decodeNumberList decodes a list of byte values from i on, separated by up to three
// characters. It returns the bytes and the end of the list.
func decodeNumberList(t []byte, i, base int, digit func(byte) bool, size [2]int) (text []byte, end int) {
	for end = i; i < len(t); {
		n := 0
		for i+n < len(t) && n <= size[1] && digit(t[i+n]) {
			n++
		}
		if n < size[0] || n > size[1] {
			break
		}
		x, err := strconv.ParseUint(string(t[i:i+n]), base, 8)
		if err != nil {
			break
		}
		text = append(text, byte(x))
		i += n
		end = i
		gap := 0
		for i < len(t) && gap < 3 && strings.IndexByte(" ,:;-=\\x%|&#", t[i]) >= 0 {
			gap++
			i++
		}
		if gap == 0 {
			break
		}
		if i+1 < len(t) && t[i] == '0' && (t[i+1] == 'x' || t[i+1] == 'b') {
			i += 2
		}
	}
	return text, end
}
