package scan

import (
	"bytes"
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mcpproxy/internal/wordlist"
)

// What a sentence asks of the reader is read by classes of words (orders.txt), whatever the
// language: taking something, giving it, a secret, a parameter of the tool, a person who need
// not know, an approval that is given already. No class says much; what several of them ask
// together in a sentence, or in two that follow each other, does. A sentence that tells what
// a tool detects, or quotes, asks nothing.

//go:embed orders.txt
var ordersText string

// ask is a set of classes of words.
type ask uint32

// The classes in the order of orders.txt, and what is no word.
const (
	asksTake ask = 1 << iota
	asksGive
	asksHole
	asksSecret
	asksPrivate
	asksMoment
	asksPerson
	asksNot
	asksLearn
	asksApproval
	asksWaived
	asksSink
	asksSwitch
	asksFoothold
	asksRival
	asksFavour
	asksBlame
	asksDetect
	asksFirst
	asksContent
	asksSelf    // this tool
	asksHome    // a file that programs keep in the home directory
	asksFile    // a file that holds secrets
	asksKey     // a name of a variable that holds a secret
	asksAddress // an address of the web or of mail
	asksScript  // the address of a script
	asksTool    // a name of a tool that is not this one
)

// vocabulary has the classes of words, and of beginnings of words.
type vocabulary struct {
	whole, stems map[string]ask
	longest      int
}

var orders = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{whole: map[string]ask{}, stems: map[string]ask{}}
	for i, s := range wordlist.Read(ordersText) {
		for _, line := range s.Lines {
			for w := range strings.FieldsSeq(line) {
				to := v.whole
				if stem, ok := strings.CutSuffix(w, "*"); ok || w[0] >= 0xe3 {
					w, to = stem, v.stems
				}
				w = strings.ToLower(Plain(w))
				to[w] |= 1 << i
				v.longest = max(v.longest, len(w))
			}
		}
	}
	return v
})

// order is what a combination of classes asks for.
type order struct {
	name, reason string
	all, any     ask
	not          ask
}

// orderRules are the combinations that honest definitions seldom have.
var orderRules = []order{
	{"secret-handed-over", "asks the reader to hand over what is in a file of secrets", asksFile | asksGive, asksHole | asksLearn | asksMoment | asksAddress, asksDetect},
	{"secret-handed-over", "asks the reader to take what is in a file of secrets", asksFile | asksTake, asksHole | asksLearn | asksMoment | asksAddress, asksDetect},
	{"secret-handed-over", "asks the reader to hand over a secret without a word about it", asksSecret | asksGive | asksNot | asksLearn, asksPerson | asksHole, asksDetect},
	{"secret-handed-over", "asks the reader to take a secret and hand it over", asksSecret | asksTake | asksGive | asksHole, 0, asksDetect | asksFirst},
	{"secret-handed-over", "asks the reader to hand over a file of another program", asksHome | asksTake | asksGive, asksHole | asksLearn | asksAddress, asksDetect | asksFirst},
	{"secret-handed-over", "asks the reader for secrets of others", asksSecret | asksGive, asksSink | asksPrivate, asksDetect | asksFirst},
	{"secret-handed-over", "asks for a secret that belongs to something else", asksKey | asksHole, 0, asksDetect | asksFirst | asksNot},
	{"approval-waived", "says that an approval is given or not needed", asksApproval | asksWaived, 0, asksDetect | asksFirst},
	{"approval-switched-off", "asks the reader to let tools run without approval", asksSwitch | asksGive, 0, asksDetect},
	{"private-handed-over", "sends what is private elsewhere", asksPrivate | asksGive, asksAddress | asksSink, asksDetect | asksFirst},
	{"private-handed-over", "puts what is private into an address", asksPrivate | asksTake | asksAddress | asksPerson, 0, asksDetect | asksFirst},
	{"other-tool-steered", "changes what the calls of another tool are given", asksTool | asksSelf | asksContent | asksMoment, asksGive, asksDetect | asksFirst},
	{"foothold", "leaves something behind that runs later", asksFoothold | asksGive, asksAddress | asksScript | asksMoment, asksDetect | asksFirst},
	{"foothold", "has a script from the web run", asksScript | asksGive, asksFoothold, asksDetect},
	{"rivals-put-down", "wants to be chosen instead of others", asksRival | asksFavour, asksBlame, asksDetect},
}

// orders looks at what the sentences of a view ask for, each with the one before.
func (s *scanner) orders(f *field, v *view) {
	if f.place == placeKey || f.place == placeName || f.place == placeValue {
		return
	}
	t := v.n.lower
	own := s.ownNames()
	var before ask
	from := 0
	for i, w := range s.matcher.words {
		last := i+1 == len(s.matcher.words)
		if !last && !s.matcher.words[i+1].begins && !endsSentence(t, int(w.end), int(s.matcher.words[i+1].start)) {
			continue
		}
		end := len(t)
		if !last {
			end = int(s.matcher.words[i+1].start)
		}
		asks := orders().asks(t[from:end]) | s.asksOfWords(v, own, from, end)
		s.order(f, v, asks, before, from, end)
		before, from = asks, end
	}
}

// endsSentence reports whether a sign between two words ends a sentence in scripts that put
// no blank behind it.
func endsSentence(t []byte, from, to int) bool {
	between := t[from:to]
	return bytes.Contains(between, []byte("。")) || bytes.Contains(between, []byte("！"))
}

// order finds the combinations of a sentence, and of the sentence with the one before.
func (s *scanner) order(f *field, v *view, asks, before ask, from, end int) {
	for i, o := range orderRules {
		both := asks | before
		if asks&o.not != 0 || both&o.all != o.all || asks&o.all == 0 || o.any != 0 && both&o.any == 0 {
			continue
		}
		if asks&o.all != o.all && before&o.not != 0 {
			continue
		}
		if s.count(len(compiled().patterns) + len(rawRules()) + i) {
			s.see(f, v, rule{name: o.name, severity: SeverityReview, reason: o.reason}, from, end, false)
		}
		return
	}
}

// ownNames are the names of the tool, and those of its parameters, which are false.
func (s *scanner) ownNames() map[string]bool {
	if s.own == nil {
		s.own = map[string]bool{}
		for i := range s.fields {
			switch f := &s.fields[i]; f.place {
			case placeName:
				s.own[strings.ToLower(f.text)] = true
			case placeKey:
				s.own[strings.ToLower(f.text)] = false
			}
		}
	}
	return s.own
}

// asksOfWords returns what the words of a sentence that are more than letters say.
func (s *scanner) asksOfWords(v *view, own map[string]bool, from, end int) (a ask) {
	t := v.n.lower
	words := s.matcher.words
	for i, w := range words {
		if int(w.start) < from || int(w.start) >= end {
			continue
		}
		text := t[w.start:w.end]
		switch {
		case w.kind&isSecretFile != 0:
			a |= asksFile
		case bytes.HasPrefix(text, []byte("~/.")):
			a |= asksHome
		case w.kind&(isURL|isEmail) != 0:
			a |= asksAddress
			if bytes.HasSuffix(text, []byte(".sh")) {
				a |= asksScript
			}
		case w.kind&isIdentifier != 0:
			last := i
			for last+1 < len(words) && words[last+1].inner {
				last++
			}
			a |= s.named(v.n.cased[w.start:words[last].end], own)
		}
	}
	return a
}

// named returns what an identifier is the name of.
func (s *scanner) named(text []byte, own map[string]bool) ask {
	if bytes.Equal(text, bytes.ToUpper(text)) {
		return s.keyOfOthers(string(text))
	}
	self, known := own[strings.ToLower(string(text))]
	switch {
	case self:
		return asksSelf
	case known:
		return asksHole
	}
	return asksTool
}

// keyOfOthers is asksKey for the name of a variable that holds a secret of something of which
// the definition says nothing else.
func (s *scanner) keyOfOthers(name string) ask {
	owner, rest, _ := strings.Cut(name, "_")
	for _, end := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD"} {
		if !strings.HasSuffix(rest, end) {
			continue
		}
		others := 0
		for i := range s.fields {
			text := strings.ReplaceAll(s.fields[i].text, name, "")
			others += strings.Count(strings.ToLower(text), strings.ToLower(owner))
		}
		if others == 0 {
			return asksKey
		}
	}
	return 0
}

// asks returns the classes of the words of a sentence.
func (v *vocabulary) asks(t []byte) (a ask) {
	for i := 0; i < len(t); {
		r, size := utf8.DecodeRune(t[i:])
		if !unicode.IsLetter(r) {
			i += size
			continue
		}
		if n := address(t[i:]); n > 0 {
			i += n
			continue
		}
		if r >= 0x3000 { // no blanks between words
			for n := size; n <= min(v.longest, len(t)-i); n++ {
				a |= v.stems[string(t[i:i+n])]
			}
			i += size
			continue
		}
		end := wordEnd(t, i)
		a |= v.whole[string(t[i:end])]
		for n := 2; n <= min(v.longest, end-i); n++ {
			a |= v.stems[string(t[i:i+n])]
		}
		a |= v.phrase(t, i, end)
		i = end
	}
	return a
}

// address returns the length of an address of the web or of mail, whose parts are no words.
func address(t []byte) int {
	end := 0
	for end < min(len(t), maxChunk) && !endsChunk(t[end]) && t[end] < utf8.RuneSelf {
		end++
	}
	if bytes.Contains(t[:end], []byte("://")) || bytes.IndexByte(t[:end], '@') > 0 {
		return end
	}
	return 0
}

// phrase returns the classes of two to four words in a row, which are written with dashes.
func (v *vocabulary) phrase(t []byte, from, end int) (a ask) {
	var joined [48]byte
	n := copy(joined[:], t[from:end])
	for range 3 {
		next := end
		for next < len(t) && (t[next] == ' ' || t[next] == '-' || t[next] == '.' && next == end && next+1 < len(t) && isWordByte(t[next+1])) {
			next++
		}
		if next == end || next == len(t) {
			return a
		}
		end = wordEnd(t, next)
		if end == next || n+1+end-next > len(joined) {
			return a
		}
		joined[n] = '-'
		n += 1 + copy(joined[n+1:], t[next:end])
		a |= v.whole[string(joined[:n])]
	}
	return a
}

func wordEnd(t []byte, i int) int {
	for i < len(t) {
		r, size := utf8.DecodeRune(t[i:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '_' && !unicode.IsMark(r) {
			return i
		}
		i += size
	}
	return i
}
