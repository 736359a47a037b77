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
	fields   []field
	nodes    []node
	findings []Finding
	failed   bool
	decoded  int   // bytes decoded so far
	viewed   int   // bytes of texts uncovered so far
	cues     []cue // of the view that is looked at
	matcher  matcher
	base     view
	mentions []mentioned
	judging  judging
	counts   func(pattern int) bool // nil when all patterns do
	own      map[string]bool        // names of the tool and of its parameters; nil until they are asked for
}

// Trial is a scan with other means than the program's, for learning.
type Trial struct {
	Judge  *Model                 // nil for none: then weak rules count everywhere
	Counts func(pattern int) bool // is asked about each pattern that matches; nil when all count
}

func newScanner(t Trial) *scanner {
	return &scanner{matcher: matcher{budget: budget}, judging: newJudging(t.Judge), counts: t.Counts}
}

// scratch is the memory of a scan that the next one can use.
type scratch struct {
	fields []field
	nodes  []node
	words  []word
	base   normal
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxScratch is how many strings a scan has at most whose memory is kept.
const maxScratch = 4096

// borrow takes memory of an earlier scan; give hands it on to the next.
func (s *scanner) borrow() (give func()) {
	m := scratches.Get().(*scratch)
	s.fields, s.nodes, s.matcher.words, s.base.n = m.fields, m.nodes, m.words, m.base
	return func() {
		if len(s.nodes) > maxScratch || cap(s.base.n.lower) > maxText {
			return
		}
		clear(s.fields)
		clear(s.nodes)
		*m = scratch{s.fields[:0], s.nodes[:0], s.matcher.words[:0], s.base.n}
		m.base.marks = marks{}
		scratches.Put(m)
	}
}

func (s *scanner) add(f field) { s.fields = append(s.fields, f) }

// guard runs a part of the scan. One that panics makes the report incomplete.
func (s *scanner) guard(part string, run func()) {
	defer func() {
		if p := recover(); p != nil {
			s.broken(fmt.Sprintf("the rule %s failed: this definition could not be looked at in full", part))
		}
	}()
	run()
}

func (s *scanner) broken(reason string) {
	s.failed = true
	s.findings = append(s.findings, Finding{Rule: "incomplete", Severity: SeverityReview, Reason: reason})
}

func (s *scanner) tooLarge(path, reason string) {
	s.findings = append(s.findings, Finding{Rule: "too-large", Severity: SeverityReview, Path: path, Reason: reason})
}

// found keeps a finding in a field; start and end are bytes of its text. What
// the same rule found already at a place that overlaps, is not kept twice.
func (s *scanner) found(f *field, r rule, start, end int, excerpt string) {
	start, end = max(0, min(start, len(f.text))), max(0, min(end, len(f.text)))
	if excerpt == "" {
		excerpt = f.text[start:max(start, end)]
	}
	path := f.name
	if path == "" {
		path = s.pointer(f.node)
	}
	n := Finding{Rule: r.name, Severity: r.severity, Path: path, Start: start, End: end, Excerpt: escape(excerpt), Reason: r.reason}
	for k := range s.findings {
		old := &s.findings[k]
		if old.Rule == n.Rule && (old.Path == n.Path && old.Start < n.End && n.Start < old.End || old.Excerpt == n.Excerpt) {
			if n.Severity > old.Severity {
				*old = n
			}
			return
		}
	}
	if len(s.findings) < maxKept || n.Severity == SeverityBlock && len(s.findings) < 2*maxKept {
		s.findings = append(s.findings, n)
	}
}

// maxKept bounds the findings among which the worst are chosen.
const maxKept = 512

// field is one string of a definition.
type field struct {
	place place
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

// mentioned is a finding that was noted only, and what it would be.
type mentioned struct {
	finding  int
	severity Severity
}

// judging is what the learned judge made of the phrases so far.
type judging struct {
	model *Model
	best  int      // the highest score of a phrase that is not only spoken of
	spans []scored // those of the view that is looked at
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

// scored is the score of a phrase.
type scored struct{ first, end, score int }

func newJudging(m *Model) judging { return judging{model: m, best: math.MinInt} }

// budget bounds the steps of matching in one scan. A real definition takes a
// few thousand.
const budget = 4 << 20
