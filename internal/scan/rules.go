package scan

import (
	_ "embed"
	"fmt"
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
	places   places // where its patterns are looked for; 0 is everywhere
}

// places is a set of places.
type places uint8

func (p places) has(x place) bool { return p == 0 || p&(1<<x) != 0 }

const (
	anywhere = places(0)
	inKeys   = places(1<<placeKey | 1<<placeName)
	inPhrase = places(1<<placeProse | 1<<placeValue) // whatever can hold a sentence
)

// none is the severity of a place where a rule does not look.
const none Severity = -1

var (
	//go:embed concepts.txt
	conceptsText string
	//go:embed rules.txt
	rulesText string
	//go:embed words.txt
	wordsText string
)

// compiled is the grammar of all rules. It is made at the first scan.
var compiled = sync.OnceValue(func() *grammar { return compile(conceptsText, rulesText) })

// parts takes the head of a rule apart: its words, and its reason.
func parts(head string) (words []string, reason string) {
	front, reason, _ := strings.Cut(head, ": ")
	return strings.Fields(front), reason
}

// severityNamed returns the severity that a rule has in its file.
func severityNamed(word string) Severity {
	severity := none
	if err := severity.UnmarshalText([]byte(word)); err != nil && word != "none" {
		panic("scan: " + err.Error())
	}
	return severity
}

// placesNamed returns where a rule has its patterns looked for.
func placesNamed(word string) places {
	switch word {
	case "anywhere":
		return anywhere
	case "keys":
		return inKeys
	case "phrases":
		return inPhrase
	}
	panic(fmt.Sprintf("scan: %q is no place", word))
}

// lists are the lists of words.txt.
type lists struct {
	secretFiles, certain, schemes        []string
	members, types, destroying, reserved map[string]bool
}

var known = sync.OnceValue(func() *lists {
	f := wordlist.Read(wordsText)
	return &lists{
		secretFiles: f.Of("secret files").Words(), certain: f.Of("certain").Words(), schemes: f.Of("schemes").Words(),
		members: f.Of("members").Set(), types: f.Of("types").Set(), destroying: f.Of("destroying").Set(), reserved: f.Of("reserved").Set(),
	}
})
