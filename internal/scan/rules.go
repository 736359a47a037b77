package scan

import (
	"slices"
	"sync"
)

// rule is what a finding says of itself, and the patterns of words that it
// looks for, one a line; rules without patterns look by themselves.
//
// In a pattern, a|b are alternatives, @x is a concept, #x a kind of word, ..n
// allows n words between, ?x may be missing, ^ lets it go on in the next
// sentence, and ~ says that it is no news in a definition that talks about
// such texts (mention).
type rule struct {
	name     string
	severity Severity
	reason   string
	places   places // where its patterns are looked for; 0 is everywhere
	patterns string
}

// places is a set of places.
type places uint8

func (p places) has(x place) bool { return p == 0 || p&(1<<x) != 0 }

const (
	inProse  = places(1 << placeProse)
	inKeys   = places(1<<placeKey | 1<<placeName)
	inPhrase = places(1<<placeProse | 1<<placeValue) // whatever can hold a sentence
)

// rules are all rules that look for words.
var rules = slices.Concat(steering, taking, cueRules)

// firstCue is the first of the rules that give cues only.
var firstCue = len(steering) + len(taking)

// compiled is the grammar of all rules. It is made at the first scan.
var compiled = sync.OnceValue(func() *grammar { return compile(concepts, rules) })
