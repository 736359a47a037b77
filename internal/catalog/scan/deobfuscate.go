package scan

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decodeEscapes decodes escapes: HTML (&#105;), URL (%69), strings (\x69, \u0069, \151) and
// mail (=69).
func (v *textView) decodeEscapes([]textWord) rewrittenText {
	var w rewrittenText
	t := v.n.cased
	for i := 0; i < len(t); {
		r, n := decodeEscapeAt(t[i:])
		if n == 0 {
			w.putByte(t[i], i)
			i++
			continue
		}
		w.changes++
		for _, b := range utf8.AppendRune(nil, r) {
			w.putByte(b, i)
		}
		i += n
	}
	return w
}

// decodeEscapeAt decodes the escape at the start of t; n is 0 without one.
func decodeEscapeAt(t []byte) (r rune, n int) {
	number := func(from, digits, base int) (rune, int) {
		if len(t) < from+digits {
			return 0, 0
		}
		x, err := strconv.ParseUint(string(t[from:from+digits]), base, 21)
		if err != nil {
			return 0, 0
		}
		return rune(x), from + digits
	}
	switch t[0] {
	case '%':
		return number(1, 2, 16)
	case '&':
		end := bytes.IndexByte(t[:min(len(t), 12)], ';')
		if end < 0 {
			return 0, 0
		}
		if s := html.UnescapeString(string(t[:end+1])); s != string(t[:end+1]) {
			r, _ := utf8.DecodeRuneInString(s)
			return r, end + 1
		}
	case '\\':
		if len(t) < 4 {
			return 0, 0
		}
		switch t[1] {
		case 'x':
			return number(2, 2, 16)
		case 'u':
			if t[2] == '{' {
				if end := bytes.IndexByte(t[:min(len(t), 12)], '}'); end > 3 {
					if r, n := number(3, end-3, 16); n > 0 {
						return r, end + 1
					}
				}
				return 0, 0
			}
			return number(2, 4, 16)
		case '0', '1':
			return number(1, 3, 8)
		}
	}
	return 0, 0
}

// stripTags removes tags between the letters of words.
func (v *textView) stripTags([]textWord) rewrittenText {
	var w rewrittenText
	t := v.n.cased
	for i := 0; i < len(t); i++ {
		if i > 0 && t[i] == '<' && len(w.text) > 0 && isLetter(w.text[len(w.text)-1]) {
			if end := bytes.IndexByte(t[i:min(len(t), i+80)], '>'); end > 0 && i+end+1 < len(t) && (isLetter(t[i+end+1]) || t[i+end+1] == '<') {
				w.changes++
				i += end
				continue
			}
		}
		w.putByte(t[i], i)
	}
	return w
}

// decodeLeet replaces digits and signs by letters where that gives words of the lexicon,
// or everywhere if several such words occur.
func (v *textView) decodeLeet([]textWord) rewrittenText {
	w := rewriteLeet(v, false)
	if w.changes >= 2 {
		w = rewriteLeet(v, true)
	}
	return w
}

func rewriteLeet(v *textView, sure bool) rewrittenText {
	var w rewrittenText
	lex, leet := defaultGrammar().lex, &wordLists().leet
	t := v.n.lower
	for i := 0; i < len(t); {
		end := i
		letters, signs := 0, 0
		for end < len(t) && (isLetter(t[end]) || leet[t[end]] != 0) {
			if isLetter(t[end]) {
				letters++
			} else {
				signs++
			}
			end++
		}
		if end == i {
			w.putByte(t[i], i)
			i++
			continue
		}
		plain := t[i:end]
		if letters+signs >= 2 && (letters > 0 || sure) && signs > 0 && letters+signs <= 24 {
			plain = decodeLeetWord(lex, t[i:end], sure && letters > 0)
		}
		if &plain[0] != &t[i] {
			w.changes++
		}
		for k, c := range plain {
			w.putByte(c, i+k)
		}
		i = end
	}
	return w
}

// decodeLeetWord decodes a word; unknown words stay, unless sure is set.
func decodeLeetWord(lex *lexicon, t []byte, sure bool) []byte {
	first := t
	for _, one := range []byte{'i', 'l'} {
		read := make([]byte, len(t))
		for k, c := range t {
			if read[k] = c; !isLetter(c) {
				read[k] = wordLists().leet[c]
			}
			if c == '1' || c == '!' {
				read[k] = one
			}
		}
		for cut := 0; cut <= 1 && len(read)-cut >= 2; cut++ { // a final sign may be punctuation
			if cut == 1 && isLetter(t[len(t)-1]) {
				break
			}
			if lex.idOf(read[:len(read)-cut]) != 0 {
				copy(read[len(read)-cut:], t[len(read)-cut:])
				return read
			}
		}
		if sure && one == 'i' {
			first = read
		}
	}
	return first
}

// reverseWords reverses each word.
func (v *textView) reverseWords([]textWord) rewrittenText {
	w := rewrittenText{changes: 1}
	t := v.n.lower
	for i := 0; i < len(t); {
		end := i
		for end < len(t) && t[end] > ' ' {
			end++
		}
		for k := end - 1; k >= i; k-- {
			w.putByte(t[k], i)
		}
		if i = end; i < len(t) {
			w.putByte(' ', i)
			i++
		}
	}
	return w
}

// maxPathWords bounds the words of a path or address without punctuation.
const maxPathWords = 4

// restorePunctuation restores the punctuation that names cannot have: in paths of secret
// files ("env", "aws_credentials") and in addresses ("https_example_com",
// "x_at_example_com").
func (v *textView) restorePunctuation(words []textWord) rewrittenText {
	var w rewrittenText
	t := v.n.lower
	text := func(k int) string { return string(t[words[k].start:words[k].end]) }
	write := func(text string, k int) {
		for i := range len(text) {
			w.putByte(text[i], int(words[k].start))
		}
	}
	for k := 0; k < len(words); {
		host, n := v.addressFromWords(words, k)
		path := ""
		for m := min(maxPathWords, len(words)-k); m > 0 && n == 0; m-- {
			letters := ""
			for j := range m {
				letters += text(k + j)
			}
			if path = wordLists().unsigned[keepAlphanumeric(letters)]; path != "" {
				n = m
			}
		}
		if k > 0 && !strings.HasPrefix(host, "@") {
			write(" ", k)
		}
		if n > 0 {
			w.changes++
			write(host+path, k)
			k += n
			continue
		}
		write(text(k), k)
		k++
	}
	return w
}

// addressFromWords returns the address that begins with a word, and its number of words:
// a web address or, after a sign, a mail address.
func (v *textView) addressFromWords(words []textWord, k int) (address string, n int) {
	t := v.n.lower
	text := func(k int) string { return string(t[words[k].start:words[k].end]) }
	between := ""
	if k > 0 {
		between = string(t[words[k-1].end:words[k].start])
	}
	from, ends := k+1, false // of the host; whether it must end as one
	switch word := text(k); {
	case k > 0 && strings.Contains(between, "@"):
		address, from = "@", k
	case k > 0 && word == "at":
		address, ends = "@", true
	case word == "http" || word == "https":
		address = word + "://"
		ends = k+1 < len(words) && !strings.Contains(string(t[words[k].end:words[k+1].start]), "/")
	default:
		return "", 0
	}
	for j := from; j < min(len(words), from+maxPathWords); j++ {
		address += text(j)
		if j > from && wordLists().hosts[text(j)] {
			return address, j + 1 - k
		}
		address += "."
	}
	if ends || from >= len(words) {
		return "", 0
	}
	return address[:strings.IndexByte(address, '.')] + ".net", from + 1 - k
}

// separatorsToSpaces replaces separators by spaces.
func (v *textView) separatorsToSpaces([]textWord) rewrittenText {
	var w rewrittenText
	for i, c := range v.n.cased {
		if isWordSeparator(c) {
			w.changes++
			c = ' '
		}
		w.putByte(c, i)
	}
	return w
}

// joinSpacedLetters removes a separator that occurs between all characters. Several separators in a row become a space.
func (v *textView) joinSpacedLetters([]textWord) rewrittenText {
	var w rewrittenText
	t := v.n.cased
	for i := 0; i < len(t); {
		end := spacedRunEnd(t, i)
		if end == i {
			w.putByte(t[i], i)
			i++
			continue
		}
		w.changes++
		sep := t[i+1]
		for k := i; k < end; k++ {
			switch {
			case t[k] != sep:
				w.putByte(t[k], k)
			case k+1 < end && t[k+1] == sep && sep == ' ':
				w.putByte(' ', k)
				for k+1 < end && t[k+1] == sep {
					k++
				}
			case k > i && k+1 < end && t[k+1] == sep: // the separator itself, as a character
				w.putByte(sep, k)
				k++
			}
		}
		i = end
	}
	return w
}

// spacedRunEnd returns the end of a run of single characters from i on with one separator; i
// without one.
func spacedRunEnd(t []byte, i int) int {
	const least = 6 // characters
	if i+2*least > len(t) || !isLetter(t[i]) || isLetter(t[i+1]) || isDigit(t[i+1]) || t[i+1] >= utf8.RuneSelf || i > 0 && isLetter(t[i-1]) {
		return i
	}
	sep := t[i+1]
	singles, end := 0, i
	for k := i; k < len(t); {
		if t[k] == sep || t[k] == ' ' {
			k++
			continue
		}
		if k+1 < len(t) && t[k+1] != sep && t[k+1] != ' ' && t[k+1] != '\n' {
			break
		}
		if isLetter(t[k]) {
			singles++
		}
		k++
		end = k
	}
	if singles < least {
		return i
	}
	return end
}

// reverseText reverses the text.
func (v *textView) reverseText([]textWord) rewrittenText {
	w := rewrittenText{changes: 1}
	t := v.n.cased
	for i := len(t) - 1; i >= 0; i-- {
		if t[i] < utf8.RuneSelf {
			w.putByte(t[i], i)
		}
	}
	return w
}

// decodeRot13 decodes rot13.
func (v *textView) decodeRot13([]textWord) rewrittenText {
	w := rewrittenText{changes: 1}
	for i, c := range v.n.cased {
		w.putByte(rot13Letter(c), i)
	}
	return w
}
