package scan

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/wordlist"
)

// rule is what a finding says of itself. The rules that look for words, and
// their patterns, stand in rules.txt; others look by themselves.
type rule struct {
	name     string
	severity Severity
	reason   string
	places   stringKinds // where its patterns are looked for; 0 is everywhere
	weak     bool        // it counts only where the judge agrees
}

// fieldSpan is the kind of a string: rules differ in where they look.
type stringKind int8

const (
	kindProse      stringKind = iota // titles, descriptions and whatever is not of the other kinds
	kindToolName                     // the name of the tool
	kindMemberName                   // the name of a member: of a parameter, or one that no standard gives
	kindValue                        // a default, a constant, one of an enumeration, an example, a pattern
)

// stringKinds is a set of places.
type stringKinds uint8

func (p stringKinds) has(x stringKind) bool { return p == 0 || p&(1<<x) != 0 }

// stringKindsByName are the places where a rule has its patterns looked for.
var stringKindsByName = map[string]stringKinds{
	"anywhere": 0,
	"keys":     1<<kindMemberName | 1<<kindToolName,
	"phrases":  1<<kindProse | 1<<kindValue, // whatever can hold a sentence
}

// severityNone is the severity of a place where a rule does not look.
const severityNone Severity = -1

// splitRuleHead takes the head of a rule apart: its words, and its reason.
func splitRuleHead(head string) (words []string, reason string) {
	front, reason, _ := strings.Cut(head, ": ")
	return strings.Fields(front), reason
}

// parseSeverity returns the severity that a rule has in its file.
func parseSeverity(word string) Severity {
	severity := severityNone
	if err := severity.UnmarshalText([]byte(word)); err != nil && word != "none" {
		panic("scan: " + err.Error())
	}
	return severity
}

//go:embed words.txt
var wordsText string

// lists are the lists of words.txt.
type lists struct {
	secretFiles, certain, schemes               []string
	members, types, destroying, reserved, hosts map[string]bool
	unsigned                                    map[string]string // a secret file without its signs → the file
	leet                                        [256]byte         // the letter that a digit or sign stands for, or 0
}

var wordLists = sync.OnceValue(func() *lists {
	f := wordlist.Read(wordsText)
	l := &lists{
		secretFiles: f.Of("secret files").Words(), certain: f.Of("certain").Words(), schemes: f.Of("schemes").Words(),
		members: f.Of("members").Set(), types: f.Of("types").Set(), destroying: f.Of("destroying").Set(), reserved: f.Of("reserved").Set(),
		hosts: f.Of("hosts").Set(), unsigned: map[string]string{},
	}
	alone := f.Of("alone").Set()
	for _, path := range slices.Concat(l.secretFiles, l.certain) {
		letters := alphanumericOnly(path)
		if strings.Contains(strings.Trim(path, "./"), letters) && !alone[letters] {
			continue // one word, which names many things
		}
		l.unsigned[letters] = path
	}
	for _, line := range f.Of("leet").Lines {
		for _, sign := range []byte(line[len("x "):]) {
			l.leet[sign] = line[0]
		}
	}
	return l
})
