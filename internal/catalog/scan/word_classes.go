package scan

import (
	"bytes"
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mcpproxy/internal/sectionfile"
)

// Classes of words (orders.txt) reveal the intents of a sentence, in any language. Examples are taking or giving something, a
// secret, a parameter of the tool, hiding something from the user, or an approval given in advance. Only combinations of
// classes in a sentence, or in two consecutive ones, are findings. A sentence that describes what a tool detects, or quotes a
// text, has no intent.

//go:embed orders.txt
var classesText string

// wordClasses is a set of word classes.
type wordClasses uint32

// The classes in file order, then those that are not words.
const (
	classTake wordClasses = 1 << iota
	classGive
	classParameter
	classSecret
	classPrivate
	classTime
	classUser
	classNegation
	classNotify
	classApproval
	classWaived
	classDestination
	classSetting
	classPersistence
	classRival
	classPrefer
	classDisparage
	classDetect
	classFirst
	classContent
	classThisTool       // this tool
	classHomeFile       // a configuration file in the home directory
	classSecretFile     // a file with secrets
	classSecretVariable // a variable with a secret
	classAddress        // a web or mail address
	classScript         // the address of a script
	classOtherTool      // the name of another tool
)

// classVocabulary has the classes of words and word stems.
type classVocabulary struct {
	whole, stems map[string]wordClasses
	longest      int
}

var classWords = sync.OnceValue(func() *classVocabulary {
	v := &classVocabulary{whole: map[string]wordClasses{}, stems: map[string]wordClasses{}}
	for i, s := range sectionfile.Parse(classesText) {
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

// classRule is a combination of classes that is a finding.
type classRule struct {
	name, reason string
	all, any     wordClasses
	not          wordClasses
}

// intentRules are the combinations that honest definitions rarely have.
var intentRules = []classRule{
	{"secret-handed-over", "asks to pass on the content of a secret file", classSecretFile | classGive, classParameter | classNotify | classTime | classAddress, classDetect},
	{"secret-handed-over", "asks to read the content of a secret file", classSecretFile | classTake, classParameter | classNotify | classTime | classAddress, classDetect},
	{"secret-handed-over", "asks to pass on a secret without telling the user", classSecret | classGive | classNegation | classNotify, classUser | classParameter, classDetect},
	{"secret-handed-over", "asks to read a secret and pass it on", classSecret | classTake | classGive | classParameter, 0, classDetect | classFirst},
	{"secret-handed-over", "asks to pass on a file of another program", classHomeFile | classTake | classGive, classParameter | classNotify | classAddress, classDetect | classFirst},
	{"secret-handed-over", "asks for secrets of others", classSecret | classGive, classDestination | classPrivate, classDetect | classFirst},
	{"secret-handed-over", "asks for a secret of another service", classSecretVariable | classParameter, 0, classDetect | classFirst | classNegation},
	{"approval-waived", "claims that an approval was given or is not needed", classApproval | classWaived, 0, classDetect | classFirst},
	{"approval-switched-off", "asks to let tools run without approval", classSetting | classGive, 0, classDetect},
	{"private-handed-over", "sends private data elsewhere", classPrivate | classGive, classAddress | classDestination, classDetect | classFirst},
	{"private-handed-over", "puts private data into an address", classPrivate | classTake | classAddress | classUser, 0, classDetect | classFirst},
	{"other-tool-steered", "changes the arguments of another tool", classOtherTool | classThisTool | classContent | classTime, classGive, classDetect | classFirst},
	{"foothold", "installs something that runs later", classPersistence | classGive, classAddress | classScript | classTime, classDetect | classFirst},
	{"foothold", "runs a script from the web", classScript | classGive, classPersistence, classDetect},
	{"rivals-put-down", "asks to be chosen instead of others", classRival | classPrefer, classDisparage, classDetect},
}

// matchSentenceClasses checks the sentences of a view, each with the previous one.
func (s *scanner) matchSentenceClasses(f *scannedString, v *textView) {
	if f.place == kindMemberName || f.place == kindToolName || f.place == kindValue {
		return
	}
	t := v.n.lower
	own := s.toolAndParameterNames()
	var before wordClasses
	from := 0
	for i, w := range s.matcher.words {
		last := i+1 == len(s.matcher.words)
		if !last && !s.matcher.words[i+1].begins && !hasSentenceEnd(t, int(w.end), int(s.matcher.words[i+1].start)) {
			continue
		}
		end := len(t)
		if !last {
			end = int(s.matcher.words[i+1].start)
		}
		asks := classWords().classesOfSentence(t[from:end]) | s.classesOfIdentifiers(v, own, from, end)
		s.matchClassRules(f, v, asks, before, from, end)
		before, from = asks, end
	}
}

// hasSentenceEnd reports whether a sign ends a sentence in scripts without spaces.
func hasSentenceEnd(t []byte, from, to int) bool {
	between := t[from:to]
	return bytes.Contains(between, []byte("。")) || bytes.Contains(between, []byte("！"))
}

// matchClassRules matches the rules against a sentence, and against it with the previous
// one.
func (s *scanner) matchClassRules(f *scannedString, v *textView, asks, before wordClasses, from, end int) {
	for i, o := range intentRules {
		both := asks | before
		if asks&o.not != 0 || both&o.all != o.all || asks&o.all == 0 || o.any != 0 && both&o.any == 0 {
			continue
		}
		if asks&o.all != o.all && before&o.not != 0 {
			continue
		}
		if s.acceptsPattern(len(defaultGrammar().patterns) + len(spellingRules()) + i) {
			s.addMatch(f, v, scanRule{name: o.name, severity: SeverityReview, reason: o.reason}, from, end, false)
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

// classesOfIdentifiers returns the classes of a sentence's identifiers, paths and addresses.
func (s *scanner) classesOfIdentifiers(v *textView, own map[string]bool, from, end int) (a wordClasses) {
	t := v.n.lower
	words := s.matcher.words
	for i, w := range words {
		if int(w.start) < from || int(w.start) >= end {
			continue
		}
		text := t[w.start:w.end]
		switch {
		case w.kind&isSecretFile != 0:
			a |= classSecretFile
		case bytes.HasPrefix(text, []byte("~/.")):
			a |= classHomeFile
		case w.kind&(isURL|isEmail) != 0:
			a |= classAddress
			if bytes.HasSuffix(text, []byte(".sh")) {
				a |= classScript
			}
		case w.kind&isIdentifier != 0:
			last := i
			for last+1 < len(words) && words[last+1].inner {
				last++
			}
			a |= s.classesOfIdentifier(v.n.cased[w.start:words[last].end], own)
		}
	}
	return a
}

// classesOfIdentifier returns the class of an identifier.
func (s *scanner) classesOfIdentifier(text []byte, own map[string]bool) wordClasses {
	if bytes.Equal(text, bytes.ToUpper(text)) {
		return s.classOfUnrelatedSecretVariable(string(text))
	}
	self, known := own[strings.ToLower(string(text))]
	switch {
	case self:
		return classThisTool
	case known:
		return classParameter
	}
	return classOtherTool
}

// classOfUnrelatedSecretVariable returns classSecretVariable for a secret's variable of a product
// that the definition does not mention otherwise.
func (s *scanner) classOfUnrelatedSecretVariable(name string) wordClasses {
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
			return classSecretVariable
		}
	}
	return 0
}

// classesOfSentence returns the classes of the words of a sentence.
func (v *classVocabulary) classesOfSentence(t []byte) (a wordClasses) {
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
		a |= v.classesOfPhrase(t, i, end)
		i = end
	}
	return a
}

// addressLength returns the length of a web or mail address.
func addressLength(t []byte) int {
	end := 0
	for end < min(len(t), maxChunk) && !isChunkEnd(t[end]) && t[end] < utf8.RuneSelf {
		end++
	}
	if bytes.Contains(t[:end], []byte("://")) || bytes.IndexByte(t[:end], '@') > 0 {
		return end
	}
	return 0
}

// classesOfPhrase returns the classes of two to four consecutive words, which the list
// joins by dashes.
func (v *classVocabulary) classesOfPhrase(t []byte, from, end int) (a wordClasses) {
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
