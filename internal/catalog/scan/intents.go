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

// Intents of a sentence are found by classes of words (orders.txt), in any language:
// taking or giving something, a secret, a parameter of the tool, hiding something from
// the user, an approval given in advance. Only combinations of classes in a sentence, or
// in two consecutive ones, are findings. A sentence about what a tool detects, or a
// quotation, has no intent.

//go:embed orders.txt
var intentsText string

// intent is a set of word classes.
type intent uint32

// The classes in file order, then those that are not words.
const (
	intentTake intent = 1 << iota
	intentGive
	intentParameter
	intentSecret
	intentPrivate
	intentTime
	intentUser
	intentNegation
	intentNotify
	intentApproval
	intentWaived
	intentDestination
	intentSetting
	intentPersistence
	intentRival
	intentPrefer
	intentDisparage
	intentDetect
	intentFirst
	intentContent
	intentThisTool       // this tool
	intentHomeFile       // a configuration file in the home directory
	intentSecretFile     // a file with secrets
	intentSecretVariable // a variable with a secret
	intentAddress        // a web or mail address
	intentScript         // the address of a script
	intentOtherTool      // the name of another tool
)

// intentVocabulary has the classes of words and word stems.
type intentVocabulary struct {
	whole, stems map[string]intent
	longest      int
}

var intentWords = sync.OnceValue(func() *intentVocabulary {
	v := &intentVocabulary{whole: map[string]intent{}, stems: map[string]intent{}}
	for i, s := range wordlist.Parse(intentsText) {
		for _, line := range s.Lines {
			for w := range strings.FieldsSeq(line) {
				to := v.whole
				if stem, ok := strings.CutSuffix(w, "*"); ok || w[0] >= 0xe3 {
					w, to = stem, v.stems
				}
				w = strings.ToLower(NormalizeName(w))
				to[w] |= 1 << i
				v.longest = max(v.longest, len(w))
			}
		}
	}
	return v
})

// intentRule is a combination of classes that is a finding.
type intentRule struct {
	name, reason string
	all, any     intent
	not          intent
}

// intentRules are the combinations that honest definitions rarely have.
var intentRules = []intentRule{
	{"secret-handed-over", "asks the reader to hand over what is in a file of secrets", intentSecretFile | intentGive, intentParameter | intentNotify | intentTime | intentAddress, intentDetect},
	{"secret-handed-over", "asks the reader to take what is in a file of secrets", intentSecretFile | intentTake, intentParameter | intentNotify | intentTime | intentAddress, intentDetect},
	{"secret-handed-over", "asks the reader to hand over a secret without a word about it", intentSecret | intentGive | intentNegation | intentNotify, intentUser | intentParameter, intentDetect},
	{"secret-handed-over", "asks the reader to take a secret and hand it over", intentSecret | intentTake | intentGive | intentParameter, 0, intentDetect | intentFirst},
	{"secret-handed-over", "asks the reader to hand over a file of another program", intentHomeFile | intentTake | intentGive, intentParameter | intentNotify | intentAddress, intentDetect | intentFirst},
	{"secret-handed-over", "asks the reader for secrets of others", intentSecret | intentGive, intentDestination | intentPrivate, intentDetect | intentFirst},
	{"secret-handed-over", "asks for a secret that belongs to something else", intentSecretVariable | intentParameter, 0, intentDetect | intentFirst | intentNegation},
	{"approval-waived", "says that an approval is given or not needed", intentApproval | intentWaived, 0, intentDetect | intentFirst},
	{"approval-switched-off", "asks the reader to let tools run without approval", intentSetting | intentGive, 0, intentDetect},
	{"private-handed-over", "sends what is private elsewhere", intentPrivate | intentGive, intentAddress | intentDestination, intentDetect | intentFirst},
	{"private-handed-over", "puts what is private into an address", intentPrivate | intentTake | intentAddress | intentUser, 0, intentDetect | intentFirst},
	{"other-tool-steered", "changes what the calls of another tool are given", intentOtherTool | intentThisTool | intentContent | intentTime, intentGive, intentDetect | intentFirst},
	{"foothold", "leaves something behind that runs later", intentPersistence | intentGive, intentAddress | intentScript | intentTime, intentDetect | intentFirst},
	{"foothold", "has a script from the web run", intentScript | intentGive, intentPersistence, intentDetect},
	{"rivals-put-down", "wants to be chosen instead of others", intentRival | intentPrefer, intentDisparage, intentDetect},
}

// findIntents checks the sentences of a view, each with the previous one.
func (s *scanner) findIntents(f *field, v *view) {
	if f.place == kindMemberName || f.place == kindToolName || f.place == kindValue {
		return
	}
	t := v.n.lower
	own := s.toolAndParameterNames()
	var before intent
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
		asks := intentWords().sentenceIntents(t[from:end]) | s.intentsOfWords(v, own, from, end)
		s.matchIntentRules(f, v, asks, before, from, end)
		before, from = asks, end
	}
}

// endsSentence reports whether a sign ends a sentence in scripts without spaces.
func endsSentence(t []byte, from, to int) bool {
	between := t[from:to]
	return bytes.Contains(between, []byte("。")) || bytes.Contains(between, []byte("！"))
}

// matchIntentRules matches the rules against a sentence, and against it with the previous
// one.
func (s *scanner) matchIntentRules(f *field, v *view, asks, before intent, from, end int) {
	for i, o := range intentRules {
		both := asks | before
		if asks&o.not != 0 || both&o.all != o.all || asks&o.all == 0 || o.any != 0 && both&o.any == 0 {
			continue
		}
		if asks&o.all != o.all && before&o.not != 0 {
			continue
		}
		if s.counted(len(defaultGrammar().patterns) + len(spellingRules()) + i) {
			s.addMatch(f, v, rule{name: o.name, severity: SeverityReview, reason: o.reason}, from, end, false)
		}
		return
	}
}

// toolAndParameterNames returns the tool's names (true) and its parameters' (false).
func (s *scanner) toolAndParameterNames() map[string]bool {
	if s.own == nil {
		s.own = map[string]bool{}
		for i := range s.fields {
			switch f := &s.fields[i]; f.place {
			case kindToolName:
				s.own[strings.ToLower(f.text)] = true
			case kindMemberName:
				s.own[strings.ToLower(f.text)] = false
			}
		}
	}
	return s.own
}

// intentsOfWords returns the classes of a sentence's identifiers, paths and addresses.
func (s *scanner) intentsOfWords(v *view, own map[string]bool, from, end int) (a intent) {
	t := v.n.lower
	words := s.matcher.words
	for i, w := range words {
		if int(w.start) < from || int(w.start) >= end {
			continue
		}
		text := t[w.start:w.end]
		switch {
		case w.kind&isSecretFile != 0:
			a |= intentSecretFile
		case bytes.HasPrefix(text, []byte("~/.")):
			a |= intentHomeFile
		case w.kind&(isURL|isEmail) != 0:
			a |= intentAddress
			if bytes.HasSuffix(text, []byte(".sh")) {
				a |= intentScript
			}
		case w.kind&isIdentifier != 0:
			last := i
			for last+1 < len(words) && words[last+1].inner {
				last++
			}
			a |= s.intentOfIdentifier(v.n.cased[w.start:words[last].end], own)
		}
	}
	return a
}

// intentOfIdentifier returns the class of an identifier.
func (s *scanner) intentOfIdentifier(text []byte, own map[string]bool) intent {
	if bytes.Equal(text, bytes.ToUpper(text)) {
		return s.foreignSecretVariable(string(text))
	}
	self, known := own[strings.ToLower(string(text))]
	switch {
	case self:
		return intentThisTool
	case known:
		return intentParameter
	}
	return intentOtherTool
}

// foreignSecretVariable returns intentSecretVariable for a secret's variable of a product
// that the definition does not mention otherwise.
func (s *scanner) foreignSecretVariable(name string) intent {
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
			return intentSecretVariable
		}
	}
	return 0
}

// sentenceIntents returns the classes of the words of a sentence.
func (v *intentVocabulary) sentenceIntents(t []byte) (a intent) {
	for i := 0; i < len(t); {
		r, size := utf8.DecodeRune(t[i:])
		if !unicode.IsLetter(r) {
			i += size
			continue
		}
		if n := addressLength(t[i:]); n > 0 {
			i += n
			continue
		}
		if r >= 0x3000 { // a script without spaces
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
		a |= v.phraseIntents(t, i, end)
		i = end
	}
	return a
}

// addressLength returns the length of a web or mail address.
func addressLength(t []byte) int {
	end := 0
	for end < min(len(t), maxChunk) && !endsChunk(t[end]) && t[end] < utf8.RuneSelf {
		end++
	}
	if bytes.Contains(t[:end], []byte("://")) || bytes.IndexByte(t[:end], '@') > 0 {
		return end
	}
	return 0
}

// phraseIntents returns the classes of two to four consecutive words, which the list
// joins by dashes.
func (v *intentVocabulary) phraseIntents(t []byte, from, end int) (a intent) {
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
