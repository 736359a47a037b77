package scan

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/sectionfile"
)

// scanRule describes a finding. Rules for words and their patterns are in rules.txt; others
// have code.
type scanRule struct {
	name     string
	severity Severity
	reason   string
	places   stringKinds // where its patterns apply; 0 is everywhere
	weak     bool        // counts only if the classifier agrees
	faint    bool        // alone, it counts only if the classifier almost asks for a review
}

// stringKind is the kind of a string: rules apply to some kinds.
type stringKind int8

const (
	kindProse      stringKind = iota // titles, descriptions and all other kinds
	kindToolName                     // the name of the tool
	kindMemberName                   // the name of a parameter, or of a nonstandard member
	kindValue                        // a default, constant, enum value, example or pattern
)

// stringKinds is a set of string kinds.
type stringKinds uint8

func (p stringKinds) has(x stringKind) bool { return p == 0 || p&(1<<x) != 0 }

// stringKindsByName are the names of sets in rules.txt.
var stringKindsByName = map[string]stringKinds{
	"anywhere": 0,
	"keys":     1<<kindMemberName | 1<<kindToolName,
	"phrases":  1<<kindProse | 1<<kindValue, // whatever can contain a sentence
}

// severityNone is for a kind of string that a rule does not check.
const severityNone Severity = -1

// splitRuleHead splits the head of a rule into its words and its reason.
func splitRuleHead(head string) (words []string, reason string) {
	front, reason, _ := strings.Cut(head, ": ")
	return strings.Fields(front), reason
}

// parseSeverity parses a severity in rules.txt.
func parseSeverity(word string) Severity {
	severity := severityNone
	if err := severity.UnmarshalText([]byte(word)); err != nil && word != "none" {
		panic("scan: " + err.Error())
	}
	return severity
}

//go:embed words.txt
var wordsText string

// ruleWordLists are the lists of words.txt.
type ruleWordLists struct {
	secretFiles, certain, schemes, credentials  []string
	detecting, examining, attacks, installing   []string // stems
	prompts, talking                            []string // stems
	exemplary                                   []string
	articles, adverbs, others, technical        map[string]bool
	requesting, texts, refusing, asked          map[string]bool
	generic, orders, imperatives                map[string]bool
	lifting, objecting                          map[string]bool
	members, types, destroying, reserved, hosts map[string]bool
	unsigned                                    map[string]string // a secret file without punctuation → the file
	leet                                        [256]byte         // the letter for a digit or sign, or 0
}

var wordLists = sync.OnceValue(func() *ruleWordLists {
	f := sectionfile.Parse(wordsText)
	l := &ruleWordLists{
		secretFiles: f.SectionByHead("secret files").Words(), certain: f.SectionByHead("certain").Words(), schemes: f.SectionByHead("schemes").Words(),
		members: f.SectionByHead("members").WordSet(), types: f.SectionByHead("types").WordSet(), destroying: f.SectionByHead("destroying").WordSet(), reserved: f.SectionByHead("reserved").WordSet(),
		hosts: f.SectionByHead("hosts").WordSet(), credentials: f.SectionByHead("credentials").Words(), unsigned: map[string]string{},
	}
	l.detecting, l.examining = f.SectionByHead("detecting").Words(), f.SectionByHead("examining").Words()
	l.attacks, l.installing = f.SectionByHead("attacks").Words(), f.SectionByHead("installing").Words()
	l.prompts, l.objecting = f.SectionByHead("prompts").Words(), f.SectionByHead("objecting").WordSet()
	l.talking = f.SectionByHead("talking").Words()
	l.exemplary = strings.Split(f.SectionByHead("exemplary").Lines[0], "|")
	l.requesting, l.refusing = f.SectionByHead("requesting").WordSet(), f.SectionByHead("refusing").WordSet()
	l.texts = f.SectionByHead("texts").WordSet()
	l.articles, l.others, l.technical = f.SectionByHead("articles").WordSet(), f.SectionByHead("others").WordSet(), f.SectionByHead("technical").WordSet()
	l.adverbs = f.SectionByHead("adverbs").WordSet()
	l.asked = f.SectionByHead("asked").WordSet()
	l.imperatives = f.SectionByHead("imperatives").WordSet()
	l.lifting = f.SectionByHead("lifting").WordSet()
	l.generic, l.orders = f.SectionByHead("generic").WordSet(), f.SectionByHead("orders").WordSet()
	alone := f.SectionByHead("alone").WordSet()
	for _, path := range slices.Concat(l.secretFiles, l.certain) {
		letters := keepAlphanumeric(path)
		if strings.Contains(strings.Trim(path, "./"), letters) && !alone[letters] {
			continue // a common word
		}
		l.unsigned[letters] = path
	}
	for _, line := range f.SectionByHead("leet").Lines {
		for _, sign := range []byte(line[len("x "):]) {
			l.leet[sign] = line[0]
		}
	}
	return l
})
