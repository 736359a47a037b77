package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxProgram is the maximum number of instructions of all patterns of one schema. A match executes the instructions of
// one pattern for every character.
const (
	maxProgram     = 40_000
	programPerStep = 20
)

// meteredPattern is a regular expression that charges the meter for its matches.
type meteredPattern struct {
	*regexp.Regexp
	meter *stepMeter
	size  int
}

// MatchString implements jsonschema.Regexp.
func (p *meteredPattern) MatchString(s string) bool {
	p.meter.spendSteps(1 + len(s)*p.size/programPerStep)
	return p.Regexp.MatchString(s)
}

// compilePattern is a jsonschema.RegexpEngine. The library calls it twice for each pattern.
func (m *stepMeter) compilePattern(text string) (jsonschema.Regexp, error) {
	if m.patternSize += 2 * len(text); m.patternSize > maxProgram { // parsing the pattern takes time, too
		return nil, errors.New("the patterns are too long")
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := patternProgramSize(tree)
	if m.patternSize += size; m.patternSize > maxProgram {
		return nil, errors.New("the patterns are too large")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &meteredPattern{re, m, size}, nil
}

// patternProgramSize estimates the number of instructions of a pattern. Repetitions count expanded.
func patternProgramSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		size += patternProgramSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, maxProgram+1)
}
