package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxProgram bounds the instructions of all patterns of one schema. A match executes
// those of one pattern for every character.
const (
	maxProgram     = 40_000
	programPerStep = 20
)

// pattern is a regular expression that charges the meter for its matches.
type pattern struct {
	*regexp.Regexp
	meter *meter
	size  int
}

// MatchString implements jsonschema.Regexp.
func (p *pattern) MatchString(s string) bool {
	p.meter.spend(1 + len(s)*p.size/programPerStep)
	return p.Regexp.MatchString(s)
}

// pattern is a jsonschema.RegexpEngine. The library calls it twice for each pattern.
func (m *meter) pattern(text string) (jsonschema.Regexp, error) {
	if m.patternSize += 2 * len(text); m.patternSize > maxProgram { // parsing it takes time, too
		return nil, errors.New("the patterns are too long")
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := programSize(tree)
	if m.patternSize += size; m.patternSize > maxProgram {
		return nil, errors.New("the patterns are too large")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{re, m, size}, nil
}

// programSize estimates the number of instructions of a pattern: repetitions are
// expanded.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		size += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, maxProgram+1)
}
