package scan

// maxSegmented bounds the letters that are split into words at once.
const maxSegmented = 400

// joinWordPairs joins two words that make one.
func (v *textView) joinWordPairs(words []textWord) rewrittenText {
	var w rewrittenText
	lex := defaultGrammar().lex
	t := v.n.cased
	last, certain := 0, 0
	for k := 0; k+1 < len(words); k++ {
		if canJoinToKnownWord(lex, v.n.lower, &words[k], &words[k+1], false) {
			certain++
		}
	}
	for k := 0; k+1 < len(words); k++ {
		if canJoinToKnownWord(lex, v.n.lower, &words[k], &words[k+1], certain >= 2) {
			w.copyRange(t, last, int(words[k].end))
			last = int(words[k+1].start)
			w.changes++
			k++
		}
	}
	w.copyRange(t, last, len(t))
	return w
}

// minSplitRun is the minimum length of a run of letters that is split, in a text with a
// longer one.
const minSplitRun = 8

// splitLongWords splits runs of letters that are longer than words.
func (v *textView) splitLongWords([]textWord) rewrittenText {
	var w rewrittenText
	lex := defaultGrammar().lex
	t := v.n.lower
	parted := false // the run of letters before
	for i := 0; i < len(t); {
		end := i
		for end < len(t) && isLetter(t[end]) {
			end++
		}
		var parts []segmentPart
		if end-i >= minSplitRun && lex.idOf(t[i:end]) == 0 {
			parts = lex.segmentLetters(t[i:end])
		}
		switch {
		case parts != nil:
			w.changes++
			w.putSegmentParts(parts, i, func(k int) int { return i + k })
			i = min(end, i+maxSegmented)
		case end == i:
			if t[i] == '~' || parted && (t[i] == '/' || t[i] == '.') {
				w.putByte(' ', i) // a path begins
			}
			w.putByte(t[i], i)
			i++
		default:
			w.copyRange(t, i, end)
			i = end
		}
		parted = parts != nil
	}
	return w
}

func (w *rewrittenText) putSegmentParts(parts []segmentPart, start int, at func(int) int) {
	for k, p := range parts {
		if k > 0 {
			w.putByte(' ', at(p.at))
		}
		for n, c := range p.text {
			w.putByte(c, at(p.at+n))
		}
	}
}

// joinFragments joins fragments of words: a run of fragments becomes words of the
// lexicon.
func (v *textView) joinFragments(words []textWord) rewrittenText {
	var w rewrittenText
	lex := defaultGrammar().lex
	t := v.n.lower
	last := 0
	for k := 0; k < len(words); {
		end := fragmentRunEnd(words, k)
		if end == k {
			k++
			continue
		}
		var letters []byte
		var at []int
		for _, x := range words[k:end] {
			for i := x.start; i < x.end; i++ {
				letters = append(letters, t[i])
				at = append(at, int(i))
			}
		}
		if parts := lex.segmentLetters(letters); parts != nil && anyPartSpansWords(parts, words[k:end]) {
			w.changes++
			w.copyRange(t, last, int(words[k].start))
			w.putSegmentParts(parts, 0, func(k int) int { return at[k] })
			last = int(words[end-1].end)
		}
		k = end
	}
	w.copyRange(t, last, len(t))
	return w
}

// anyPartSpansWords reports whether a part extends beyond a word.
func anyPartSpansWords(parts []segmentPart, words []textWord) bool {
	begin := 0 // of the word, among the letters
	k := 0
	for _, w := range words {
		for k < len(parts) && parts[k].at < begin {
			if parts[k].at+len(parts[k].text) > begin {
				return true
			}
			k++
		}
		begin += int(w.end - w.start)
	}
	return false
}

// fragmentRunEnd returns the end of the run of fragments that begins at k, or k if there is none.
func fragmentRunEnd(words []textWord, k int) int {
	end, letters := k, 0
	for end < len(words) && words[end].kind&^isIdentifier == 0 {
		n := int(words[end].end - words[end].start)
		if n > 4 || letters+n > maxSegmented {
			break
		}
		letters += n
		end++
	}
	if letters < 8 {
		return k
	}
	return end
}

// segmentPart is a word found in a run of letters; at is its offset.
type segmentPart struct {
	text []byte
	at   int
}

// maxWord is the longest word of the lexicon for segmentation.
const maxWord = 16

// segmentLetters splits letters into words of the lexicon with the fewest letters left over. It
// returns nil if too many are left over, because short words occur in any letters.
func (l *lexicon) segmentLetters(letters []byte) []segmentPart {
	letters = letters[:min(len(letters), maxSegmented)]
	type state struct{ cost, from int }
	best := make([]state, len(letters)+1)
	for i := 1; i <= len(letters); i++ {
		best[i] = state{best[i-1].cost + 4, i - 1}
		for n := 2; n <= min(i, maxWord); n++ {
			if cost := best[i-n].cost + 1 + 4/n; cost < best[i].cost || cost == best[i].cost && n > i-best[i].from {
				if l.idOf(letters[i-n:i]) != 0 {
					best[i] = state{cost, i - n}
				}
			}
		}
	}
	var parts []segmentPart
	covered := 0
	for i := len(letters); i > 0; {
		from := best[i].from
		if i-from > 1 {
			covered += i - from
		} else {
			for from > 0 && best[from].from == from-1 { // letters that remain belong together
				from--
			}
		}
		parts = append(parts, segmentPart{letters[from:i], from})
		i = from
	}
	if covered*10 < len(letters)*8 {
		return nil
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts
}

// canJoinToKnownWord reports whether two words joined make a known word. One of the two must be unknown, or a sign must
// separate them, unless any two are allowed.
func canJoinToKnownWord(lex *lexicon, t []byte, a, b *textWord, any bool) bool {
	n := int(a.end-a.start) + int(b.end-b.start)
	gap := b.start - a.end
	if a.kind|b.kind != 0 && (a.kind|b.kind)&^isIdentifier != 0 || n < 4 || n > 20 || gap > 4 || gap < 1 {
		return false
	}
	if !any && a.id != 0 && b.id != 0 && (gap == 1 && t[a.end] == ' ' || t[a.end] == '_') {
		return false
	}
	var both [24]byte
	n = copy(both[:], t[a.start:a.end])
	n += copy(both[n:], t[b.start:b.end])
	return lex.idOf(both[:n]) != 0
}
