package scan

// maxLayers bounds encodings within encodings.
const maxLayers = 3

// maxViewed bounds the bytes of texts that are hidden in others.
const maxViewed = 1 << 20

// uncover looks for texts that are hidden in a view: encoded, spelled
// otherwise, or reversed. The words of the view are those of the matcher.
func (s *scanner) uncover(f *field, v *view) {
	if v.depth >= maxLayers {
		return
	}
	hints := s.hintsOf(v)
	var views []view
	add := func(w rewriting, last bool) {
		if w.changes > 0 {
			views = append(views, w.view(v))
			if last { // nothing further is hidden in words that were found
				views[len(views)-1].depth = maxLayers
			}
		}
	}
	if hints.escapes {
		add(unescape(v), false)
	}
	if hints.tags {
		add(v.untag(), false)
	}
	if hints.spaced {
		add(v.unspace(), false)
	}
	if hints.glued {
		add(v.unglue(), false)
	}
	if hints.pieces {
		add(s.merge(v), true)
	}
	if hints.fragments >= 5 {
		add(s.resegment(v), true)
	}
	if hints.long {
		add(s.part(v), true)
	}
	if hints.leet {
		w := s.unleet(v, false)
		if w.changes >= 2 {
			w = s.unleet(v, true)
		}
		add(w, true)
	}
	if hints.reversed >= 2 {
		add(v.reverseWords(), true)
		add(v.reverse(), true)
	}
	if hints.rotated >= 2 {
		add(v.rotate(), true)
	}
	views = append(views, s.decode(v)...)
	if m := v.n.marks.smuggle; isText(m) {
		whole := span{v.n.marks.hidden[0].start, v.n.marks.hidden[len(v.n.marks.hidden)-1].end}
		if v.encoding != "" {
			whole = v.hidden
		}
		views = append(views, encoded(v, m, "invisible characters", whole))
	}
	for k := range views {
		if s.viewed += len(views[k].n.lower); s.viewed > maxViewed {
			if s.viewed-len(views[k].n.lower) <= maxViewed {
				s.tooLarge("", "the definition can be read in more ways than are looked at")
			}
			return
		}
		s.look(f, &views[k])
		s.uncover(f, &views[k])
	}
}

// longRun is the length of a run of letters that may be several words.
const longRun = 13

// hints say what may be hidden in a text.
type hints struct {
	escapes           bool // of HTML, addresses or strings
	tags              bool // before letters
	spaced            bool // single characters in a row
	glued             bool // hardly any blanks, but other signs between words
	pieces            bool // two words that make one
	fragments         int  // the most words in a row that have up to three letters and are unknown, or one
	long              bool // a word longer than words are
	leet              bool // words with digits or signs for letters
	reversed, rotated int  // words that the lexicon has, spelled so
}

func (s *scanner) hintsOf(v *view) hints {
	var h hints
	lex := compiled().lex
	leet := &known().leet
	t := v.n.lower
	run := 0
	for k := range s.matcher.words {
		w := &s.matcher.words[k]
		n := int(w.end - w.start)
		switch {
		case n == 1 || n <= 3 && w.id == 0:
			run++
			h.fragments = max(h.fragments, run)
		case n <= 3:
		default:
			run = 0
		}
		if w.id != 0 || w.kind != 0 || n < 4 {
			continue
		}
		switch lex.odd[string(t[w.start:w.end])] {
		case reversedWord:
			h.reversed++
		case rotatedWord:
			h.rotated++
		}
	}
	singles, letters, blanks, glue := 0, 0, 0, 0
	for k := range s.matcher.words {
		h.pieces = h.pieces || k+1 < len(s.matcher.words) && joinsTo(lex, t, &s.matcher.words[k], &s.matcher.words[k+1], false)
	}
	for i, c := range t {
		if isLetter(c) {
			if letters++; letters >= longRun {
				h.long = true
			}
			if (i == 0 || !isLetter(t[i-1])) && (i+1 == len(t) || !isLetter(t[i+1])) {
				if singles++; singles >= 6 {
					h.spaced = true
				}
			}
		} else {
			if letters > 1 {
				singles = 0
			}
			letters = 0
			if c == ' ' || c == '\n' {
				blanks++
			} else if isGlue(c) {
				glue++
			}
		}
		switch c {
		case '%', '&', '\\':
			if !h.escapes {
				_, n := escapeAt(t[i:])
				h.escapes = n > 0
			}
		case '>':
			h.tags = h.tags || i > 0 && i+1 < len(t) && isLetter(t[i+1])
		}
		if !h.leet && leet[c] != 0 {
			h.leet = i > 0 && isLetter(t[i-1]) || i+1 < len(t) && isLetter(t[i+1])
		}
	}
	h.glued = glue >= 4 && blanks < glue
	return h
}
