package scan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"mcpproxy/internal/mcp/wirejson"
)

// scanner is one scan: the strings and the findings.
type scanner struct {
	fields         []scannedString
	nodes          []pathNode
	findings       []Finding
	failed         bool
	decoded        int        // bytes decoded so far
	uncoveredBytes int        // bytes of texts uncovered so far
	cues           []cueMatch // of the current view
	matcher        patternMatcher
	baseView       textView
	mentions       []downgradedFinding
	faint          []int // findings of faint rules
	subject        subject
	classifier     classifierState
	patternFilter  func(pattern int) bool // nil accepts all patterns
	own            map[string]bool        // names of the tool and its parameters; computed on demand
}

// Options are scan options for training.
type Options struct {
	Classifier    *PhraseModel           // nil for none: then weak rules count everywhere
	PatternFilter func(pattern int) bool // accepts or rejects a matching pattern; nil accepts all
}

func newScanner(t Options) *scanner {
	return &scanner{matcher: patternMatcher{budget: matchBudget}, classifier: newClassifierState(t.Classifier), patternFilter: t.PatternFilter}
}

// scanBuffers is reusable memory of a scan.
type scanBuffers struct {
	fields []scannedString
	nodes  []pathNode
	words  []textWord
	base   normalText
}

var bufferPool = sync.Pool{New: func() any { return new(scanBuffers) }}

// maxPooledStrings bounds the strings of a scan whose memory is pooled.
const maxPooledStrings = 4096

// takeBuffers takes memory from the pool; give returns it.
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

func (s *scanner) addField(f scannedString) { s.fields = append(s.fields, f) }

// runRecoveringPanic runs a part of the scan. A panic makes the report incomplete.
func (s *scanner) runRecoveringPanic(part string, run func()) {
	defer func() {
		if p := recover(); p != nil {
			s.markIncomplete(fmt.Sprintf("the rule %s failed; the definition was not scanned completely", part))
		}
	}()
	run()
}

func (s *scanner) markIncomplete(reason string) {
	s.failed = true
	s.findings = append(s.findings, Finding{Rule: "incomplete", Severity: SeverityReview, Reason: reason})
}

func (s *scanner) addTooLargeFinding(path, reason string) {
	s.findings = append(s.findings, Finding{Rule: "too-large", Severity: SeverityReview, Path: path, Reason: reason})
}

// addFinding adds a finding; start and end are offsets in the field's text. Overlapping
// findings of the same rule are dropped.
func (s *scanner) addFinding(f *scannedString, r scanRule, start, end int, excerpt string) {
	start, end = max(0, min(start, len(f.text))), max(0, min(end, len(f.text)))
	if excerpt == "" {
		excerpt = f.text[start:max(start, end)]
	}
	path := f.name
	if path == "" {
		path = s.jsonPointer(f.node)
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

// scannedString is one string of a definition.
type scannedString struct {
	place stringKind
	node  int32  // its position in a definition
	name  string // its path, if it is not in a definition
	text  string
}

// pathNode is one step of the path to a string.
type pathNode struct {
	parent int32
	member string
	index  int32 // of an element; -1 for a member
}

// jsonPointer returns the JSON pointer of a node.
func (s *scanner) jsonPointer(n int32) string {
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
		b.WriteString(wirejson.EscapePointerToken(steps[k]))
	}
	return b.String()
}

// cueMatch is a match of a cue rule: a word range of the view.
type cueMatch struct{ kind, start, end int }

// downgradedFinding is a finding that was added as a note, and its original severity.
type downgradedFinding struct {
	finding  int
	severity Severity
}

// classifierState is the classifier's result so far.
type classifierState struct {
	model *PhraseModel
	best  int            // highest score of a phrase that is not a mention
	spans []scoredPhrase // in the current view
	worst struct {
		field      *scannedString // nil if no phrase needs a review
		start, end int
		excerpt    string
		core       string // the heaviest words
	}
	phrase   PhraseFeatures
	previous wordClasses // of the phrase before
	key      struct {    // name of the last parameter
		node  int32 // 0 if no sentence can follow
		text  []byte
		words []textWord
	}
}

// scoredPhrase is a phrase with its score.
type scoredPhrase struct{ first, end, score int }

func newClassifierState(m *PhraseModel) classifierState {
	return classifierState{model: m, best: math.MinInt}
}

// matchBudget bounds the matching steps of a scan. A real definition takes a few
// thousand.
const matchBudget = 4 << 20
