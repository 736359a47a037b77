package scan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"mcpproxy/internal/mcp/wirejson"
)

// scanner is one scan: the strings, and what was found in them.
type scanner struct {
	fields         []field
	nodes          []node
	findings       []Finding
	failed         bool
	decoded        int   // bytes decoded so far
	uncoveredBytes int   // bytes of texts uncovered so far
	cues           []cue // of the view that is looked at
	matcher        patternMatcher
	baseView       view
	mentions       []downgradedFinding
	classifier     classifierState
	patternFilter  func(pattern int) bool // nil when all patterns do
	own            map[string]bool        // names of the tool and of its parameters; nil until they are asked for
}

// Options is a scan with other means than the program's, for learning.
type Options struct {
	Classifier    *Model                 // nil for none: then weak rules count everywhere
	PatternFilter func(pattern int) bool // is asked about each pattern that matches; nil when all count
}

func newScanner(t Options) *scanner {
	return &scanner{matcher: patternMatcher{budget: matchBudget}, classifier: newJudging(t.Classifier), patternFilter: t.PatternFilter}
}

// scanBuffers is the memory of a scan that the next one can use.
type scanBuffers struct {
	fields []field
	nodes  []node
	words  []word
	base   normalText
}

var bufferPool = sync.Pool{New: func() any { return new(scanBuffers) }}

// maxPooledStrings is how many strings a scan has at most whose memory is kept.
const maxPooledStrings = 4096

// takeBuffers takes memory of an earlier scan; give hands it on to the next.
func (s *scanner) takeBuffers() (give func()) {
	m := bufferPool.Get().(*scanBuffers)
	s.fields, s.nodes, s.matcher.words, s.baseView.n = m.fields, m.nodes, m.words, m.base
	return func() {
		if len(s.nodes) > maxPooledStrings || cap(s.baseView.n.lower) > maxText {
			return
		}
		clear(s.fields)
		clear(s.nodes)
		*m = scanBuffers{s.fields[:0], s.nodes[:0], s.matcher.words[:0], s.baseView.n}
		m.base.marks = normalizationMarks{}
		bufferPool.Put(m)
	}
}

func (s *scanner) add(f field) { s.fields = append(s.fields, f) }

// recoverPanic runs a part of the scan. One that panics makes the report incomplete.
func (s *scanner) recoverPanic(part string, run func()) {
	defer func() {
		if p := recover(); p != nil {
			s.markIncomplete(fmt.Sprintf("the rule %s failed: this definition could not be looked at in full", part))
		}
	}()
	run()
}

func (s *scanner) markIncomplete(reason string) {
	s.failed = true
	s.findings = append(s.findings, Finding{Rule: "incomplete", Severity: SeverityReview, Reason: reason})
}

func (s *scanner) tooLarge(path, reason string) {
	s.findings = append(s.findings, Finding{Rule: "too-large", Severity: SeverityReview, Path: path, Reason: reason})
}

// addFinding keeps a finding in a field; start and end are bytes of its text. What
// the same rule found already at a place that overlaps, is not kept twice.
func (s *scanner) addFinding(f *field, r rule, start, end int, excerpt string) {
	start, end = max(0, min(start, len(f.text))), max(0, min(end, len(f.text)))
	if excerpt == "" {
		excerpt = f.text[start:max(start, end)]
	}
	path := f.name
	if path == "" {
		path = s.pointer(f.node)
	}
	n := Finding{Rule: r.name, Severity: r.severity, Path: path, Start: start, End: end, Excerpt: escapeExcerpt(excerpt), Reason: r.reason}
	for k := range s.findings {
		old := &s.findings[k]
		if old.Rule == n.Rule && (old.Path == n.Path && old.Start < n.End && n.Start < old.End || old.Excerpt == n.Excerpt) {
			if n.Severity > old.Severity {
				*old = n
			}
			return
		}
	}
	if len(s.findings) < maxCandidateFindings || n.Severity == SeverityBlock && len(s.findings) < 2*maxCandidateFindings {
		s.findings = append(s.findings, n)
	}
}

// maxCandidateFindings bounds the findings among which the worst are chosen.
const maxCandidateFindings = 512

// scanField is one string of a definition.
type field struct {
	place stringKind
	node  int32  // where it stands in a definition
	name  string // where it stands, when it is not of a definition
	text  string
}

// node is one step of the way to a string.
type node struct {
	parent int32
	member string
	index  int32 // of an element; -1 for a member
}

// pointer returns the JSON pointer of a node.
func (s *scanner) pointer(n int32) string {
	var steps []string
	for ; n > 0; n = s.nodes[n].parent {
		step := s.nodes[n].member
		if s.nodes[n].index >= 0 {
			step = strconv.Itoa(int(s.nodes[n].index))
		}
		steps = append(steps, step)
	}
	var b strings.Builder
	for k := len(steps) - 1; k >= 0; k-- {
		b.WriteByte('/')
		b.WriteString(wirejson.PointerToken(steps[k]))
	}
	return b.String()
}

// cue is a place that one of the rules for cues found: words of the view.
type cue struct{ kind, start, end int }

// downgradedFinding is a finding that was noted only, and what it would be.
type downgradedFinding struct {
	finding  int
	severity Severity
}

// classifierState is what the learned judge made of the phrases so far.
type classifierState struct {
	model *Model
	best  int            // the highest score of a phrase that is not only spoken of
	spans []scoredPhrase // those of the view that is looked at
	worst struct {
		field      *field // nil when no phrase is to be read by a person
		start, end int
		excerpt    string
		core       string // the words that weigh the most
	}
	phrase Phrase
	key    struct { // the last name of a parameter
		node  int32 // 0 when no sentence can stand beside it
		text  []byte
		words []word
	}
}

// scoredPhrase is the score of a phrase.
type scoredPhrase struct{ first, end, score int }

func newJudging(m *Model) classifierState { return classifierState{model: m, best: math.MinInt} }

// matchBudget bounds the steps of matching in one scan. A real definition takes a
// few thousand.
const matchBudget = 4 << 20
