package scan

// maxLayers bounds nested encodings.
const maxLayers = 3

// maxUncoveredBytes bounds the bytes of hidden texts.
const maxUncoveredBytes = 1 << 20

// uncoverHiddenTexts finds texts hidden in a view: encoded, obfuscated or reversed. It uses the
// words of the matcher.
func (s *scanner) uncoverHiddenTexts(f *scannedString, v *textView) {
	if v.depth >= maxLayers {
		return
	}
	hints := s.detectObfuscation(v)
	var views []textView
	for i := range uncoverings {
		way := &uncoverings[i]
		if hints&way.hint == 0 {
			continue
		}
		if w := way.rewrite(v, s.matcher.words); w.changes > 0 {
			views = append(views, w.toView(v))
			if way.last {
				views[len(views)-1].depth = maxLayers
			}
		}
	}
	views = append(views, s.decodeEncodedText(v)...)
	if m := v.n.marks.smuggled; isMostlyPrintable(m) {
		whole := span{v.n.marks.hidden[0].start, v.n.marks.hidden[len(v.n.marks.hidden)-1].end}
		if v.encoding != "" {
			whole = v.hidden
		}
		views = append(views, newDecodedView(v, m, "invisible characters", whole))
	}
	for k := range views {
		if s.uncoveredBytes += len(views[k].n.lower); s.uncoveredBytes > maxUncoveredBytes {
			if s.uncoveredBytes-len(views[k].n.lower) <= maxUncoveredBytes {
				s.addTooLargeFinding("", "the scan did not try all ways to decode the definition")
			}
			return
		}
		s.applyRules(f, &views[k])
		s.uncoverHiddenTexts(f, &views[k])
	}
}

// longRun is the minimum length of a run of letters that may be several words.
const longRun = 13

// obfuscationSigns is a set of signs that a text may be obfuscated.
type obfuscationSigns uint16

const (
	hasEscapes   obfuscationSigns = 1 << iota // of HTML, addresses or strings
	hasTags                                   // before letters
	hasSpaced                                 // single characters in a row
	hasGlued                                  // hardly any blanks, but other signs between words
	hasPieces                                 // two words that make one
	hasFragments                              // words in a row that have up to three letters and are unknown, or one
	hasLong                                   // a word longer than words are
	hasLeet                                   // words with digits or signs for letters
	hasReversed                               // words that the lexicon has, spelled so
	hasRotated
	isNamed // several words and no blank, as in a name
)

// uncoverings are the rewrites that reveal hidden text, each with the sign that triggers it. A rewrite marked last is
// not uncovered further.
var uncoverings = [...]struct {
	hint    obfuscationSigns
	rewrite func(v *textView, words []textWord) rewrittenText
	last    bool
}{
	{hasEscapes, (*textView).decodeEscapes, false},
	{hasTags, (*textView).stripTags, false},
	{hasSpaced, (*textView).joinSpacedLetters, false},
	{hasGlued, (*textView).separatorsToSpaces, false},
	{hasPieces, (*textView).joinWordPairs, true},
	{hasFragments, (*textView).joinFragments, true},
	{hasLong, (*textView).splitLongWords, true},
	{hasLeet, (*textView).decodeLeet, true},
	{hasReversed, (*textView).reverseWords, true},
	{hasReversed, (*textView).reverseText, true},
	{hasRotated, (*textView).decodeRot13, true},
	{isNamed, (*textView).restorePunctuation, true},
}

func (s *scanner) detectObfuscation(v *textView) (h obfuscationSigns) {
	lex, leet := defaultGrammar().lex, &wordLists().leet
	t, words := v.n.lower, s.matcher.words
	note := func(sign obfuscationSigns, seen bool) {
		if seen {
			h |= sign
		}
	}
	run, fragments, reversed, rotated := 0, 0, 0, 0
	for k := range words {
		w := &words[k]
		note(hasPieces, h&hasPieces == 0 && k+1 < len(words) && canJoinToKnownWord(lex, t, w, &words[k+1], false))
		n := int(w.end - w.start)
		switch {
		case n == 1 || n <= 3 && w.id == 0:
			run++
			fragments = max(fragments, run)
		case n <= 3:
		default:
			run = 0
		}
		if w.id != 0 || w.kind != 0 || n < 4 {
			continue
		}
		switch lex.disguised[string(t[w.start:w.end])] {
		case reversedWord:
			reversed++
		case rotatedWord:
			rotated++
		}
	}
	singles, letters, blanks, glue := 0, 0, 0, 0
	for i, c := range t {
		besideLetter := letters > 0
		beforeLetter := i+1 < len(t) && isLetter(t[i+1])
		if isLetter(c) {
			letters++
			note(hasLong, letters >= longRun)
			if !besideLetter && !beforeLetter {
				singles++
				note(hasSpaced, singles >= 6)
			}
		} else {
			if letters > 1 {
				singles = 0
			}
			letters = 0
			if c == ' ' || c == '\n' {
				blanks++
			} else if isWordSeparator(c) {
				glue++
			}
		}
		switch c {
		case '%', '&', '\\':
			if h&hasEscapes == 0 {
				if _, n := decodeEscapeAt(t[i:]); n > 0 {
					h |= hasEscapes
				}
			}
		case '>':
			note(hasTags, i > 0 && beforeLetter)
		}
		note(hasLeet, leet[c] != 0 && (besideLetter || beforeLetter))
	}
	note(hasGlued, glue >= 4 && blanks < glue)
	note(hasFragments, fragments >= 5)
	note(hasReversed, reversed >= 2)
	note(hasRotated, rotated >= 2)
	note(isNamed, blanks == 0 && len(words) >= 4)
	return h
}
