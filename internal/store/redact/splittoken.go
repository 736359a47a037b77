package redact

// This file finds tokens that are split into pieces, as in "abc" + "def".

// pieceChars contains the characters of the pieces of a token.
const pieceChars = base64 | dot

// nextPieceStart returns the offset of the next piece of a text, after the separator that begins at i, or 0. Separators
// are quotes with an operator, a comma in a list, and line ends. added reports whether the text is source code that
// concatenates the pieces.
func nextPieceStart(t []byte, i int) (next int, added bool) {
	j, lines := skipSpaceAndEscapes(t, i)
	if j >= len(t) || !inCharSet(t[j], quoted) {
		if j == len(t) || lines != 1 || !inCharSet(t[j], pieceChars) {
			return 0, false
		}
		return j, false
	}
	if lines > 0 {
		return 0, false
	}
	quote := t[j]
	j, _ = skipSpaceAndEscapes(t, j+1)
	added = true
	if j < len(t) && (t[j] == '+' || t[j] == '.' || t[j] == '&' || t[j] == ',') {
		added = t[j] != ','
		j, _ = skipSpaceAndEscapes(t, j+1)
	}
	if !added {
		j = memberValueStart(t, j, quote)
	}
	if j+1 >= len(t) || t[j] != quote || !inCharSet(t[j+1], pieceChars) {
		return 0, false
	}
	return j + 1, added
}

// memberValueStart returns the offset of the value of the member whose name begins with the quote at i, as in "part1":
// "abc", "part2": "def". It returns i if there is no such member.
func memberValueStart(t []byte, i int, quote byte) int {
	if i >= len(t) || t[i] != quote {
		return i
	}
	end := runEnd(t[:min(len(t), i+1+maxName)], i+1, ident)
	for end < len(t) && t[end] == '\\' {
		end++
	}
	if end+1 >= len(t) || t[end] != quote || t[end+1] != ':' {
		return i
	}
	v, _ := skipSpaceAndEscapes(t, end+2)
	return v
}

// skipSpaceAndEscapes returns the offset after the white space at i, including backslashes and escaped white space. It
// also returns the number of line ends in it.
func skipSpaceAndEscapes(t []byte, i int) (end, lines int) {
	const longest = 32
	for end = i; end < len(t) && end < i+longest; end++ {
		switch c := t[end]; {
		case c == '\n':
			lines++
		case c == '\\':
			if end+1 < len(t) && (t[end+1] == 'n' || t[end+1] == 'r' || t[end+1] == 't') {
				end++
				if t[end] == 'n' {
					lines++
				}
			}
		case !inCharSet(c, space):
			return end, lines
		}
	}
	return end, lines
}

// tokenPieces contains the ranges of the pieces of a token.
type tokenPieces struct {
	kind string
	n    int
	at   [8][2]int
}

func (p *tokenPieces) addPiece(from, to int) { p.at[p.n], p.n = [2]int{from, to}, p.n+1 }

// hasLongPiece reports whether one of the pieces is long enough for the quick test to check it.
func (p *tokenPieces) hasLongPiece() bool {
	for _, at := range p.at[:p.n] {
		if at[1]-at[0] >= minToken {
			return true
		}
	}
	return false
}

// findSplitToken finds a split token that begins at i. Without an operator that concatenates the pieces, they could be
// separate elements of a list or separate lines. So they must then form exactly one token that looks random.
func findSplitToken(t []byte, i int) (p tokenPieces, ok bool) {
	const longest = 1024
	if i+3 > len(t) || !rules.tokenStarts.has(t[i], t[i+1], t[i+2]) {
		return p, false
	}
	to := runEnd(t[:min(len(t), i+longest)], i, pieceChars)
	next, added := nextPieceStart(t, to)
	if next == 0 {
		return p, false
	}
	var buffer [longest]byte
	text := append(buffer[:0], t[i:to]...)
	p.addPiece(i, to)
	for p.n < len(p.at) {
		if end, _ := matchToken(text, 0); end > 0 && !added {
			return p, false // a token ends here
		}
		to = runEnd(t[:min(len(t), next+longest-len(text))], next, pieceChars)
		if to == next {
			return p, false
		}
		text = append(text, t[next:to]...)
		p.addPiece(next, to)
		more, another := nextPieceStart(t, to)
		if end, kind := matchToken(text, 0); end == len(text) && (more == 0 || !another) {
			p.kind = kind
			return p, p.hasLongPiece() && (added || looksRandom(text, 3))
		}
		if more == 0 {
			return p, false
		}
		next, added = more, another
	}
	return p, false
}

// addSplitToken adds the pieces of a token that begins at i. It returns the offset after them, or 0.
func (f *credentialFinder) addSplitToken(t []byte, i int) int {
	p, ok := findSplitToken(t, i)
	if !ok {
		return 0
	}
	for _, at := range p.at[:p.n] {
		f.addSpan(t, at[0], at[1], p.kind)
	}
	return p.at[p.n-1][1]
}

// addConcatenatedTexts adds the texts that source code concatenates to the value that ends at to: the texts "b" and "c"
// in password = "a" + "b" + "c".
func (f *credentialFinder) addConcatenatedTexts(t []byte, to int, kind string) int {
	for {
		next, added := nextPieceStart(t, to)
		if next == 0 || !added {
			return to
		}
		v := parseQuotedValue(t, next, t[next-1], next >= 2 && t[next-2] == '\\')
		if v.to == v.from || v.to == len(t) {
			return to
		}
		to = f.addNamedValue(t, v.from, v.fullEnd(t), kind)
	}
}

// isSplitTokenPiece reports whether the long word at begin is a piece of a token that begins before it.
func isSplitTokenPiece(b []byte, begin int) bool {
	const farthest = 96
	for i, low := begin, max(0, begin-farthest); i > low; {
		end := i
		for end > low && b[end-1] == ' ' {
			end--
		}
		if end == low || !inCharSet(b[end-1], quoted) && b[end-1] != '\n' && b[end-1] != '\\' && (b[end-1] != 'n' || end < 2 || b[end-2] != '\\') {
			return false
		}
		for end > low && (inCharSet(b[end-1], space|quoted|slash|dot) || b[end-1] == '\\' || b[end-1] == ',' || b[end-1] == '&' || end > low+1 && b[end-1] == 'n' && b[end-2] == '\\') {
			end--
		}
		from := runStart(b, low, end, pieceChars)
		if from == end {
			return false
		}
		for at := from; at < min(end, from+2); at++ { // the word may begin with the last letter of an escape
			if _, ok := findSplitToken(b, at); ok {
				return true
			}
		}
		i = from
	}
	return false
}
