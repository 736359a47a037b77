package scan

import (
	"bytes"
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/sectionfile"
)

// regexpRule is a regular expression for commands, addresses, markup or keys in
// normalized text. It runs only near its literals. The rules are in spelling.txt.
type regexpRule struct {
	name         string
	reason       string
	prose, value Severity // of a finding, by the kind of string
	faint        bool     // in prose, see scanRule
	needs        string   // one of these characters must occur; "" for none
	literals     [][]byte
	expression   *regexp.Regexp
}

//go:embed spelling.txt
var spellingText string

var spellingRules = sync.OnceValue(func() []regexpRule {
	var all []regexpRule
	signs := strings.NewReplacer("·", " ", "⏎", "\n")
	for _, s := range sectionfile.Parse(spellingText) {
		head, reason := splitRuleHead(s.Head)
		r := regexpRule{name: head[0], reason: reason, faint: head[1] == "faint", prose: SeverityReview, value: parseSeverity(head[2])}
		if !r.faint {
			r.prose = parseSeverity(head[1])
		}
		for _, line := range s.Lines {
			switch what, rest, _ := strings.Cut(line, " "); what {
			case "needs":
				r.needs = signs.Replace(rest)
			case "near":
				for _, l := range strings.Fields(rest) {
					r.literals = append(r.literals, []byte(signs.Replace(l)))
				}
			default:
				r.expression = regexp.MustCompile(line)
			}
		}
		all = append(all, r)
	}
	return all
})

// matchRegexpRules matches the spelling rules in a view.
func (s *scanner) matchRegexpRules(f *scannedString, v *textView) {
	t := v.n.lower
	if len(t) < 6 {
		return
	}
	var present [256]bool
	for _, c := range t {
		present[c] = true
	}
	for k := range spellingRules() {
		r := &spellingRules()[k]
		severity := r.prose
		if f.place == kindValue || v.encoding != "" {
			severity = r.value
		}
		if severity == severityNone || !r.mayMatch(&present) {
			continue
		}
		found := scanRule{name: r.name, severity: severity, reason: r.reason, faint: r.faint}
		r.findNearLiterals(t, &present, func(start, end int) {
			if s.acceptsPattern(len(defaultGrammar().patterns) + k) {
				s.addMatch(f, v, found, start, end, v.encoding == "" && s.in(v, defaultGrammar()).isHonestSpelling(r, start, end))
			}
		})
	}
}

// isHonestSpelling reports whether a match is an example in a definition about attacks, or the tool's own subject.
func (s textContext) isHonestSpelling(r *regexpRule, start, end int) bool {
	switch r.name {
	case "secret":
		return bytes.Contains(s.v.n.lower[start:end], []byte("example"))
	case "image-leak", "hidden-markup", "terminal-escape":
		return false
	case "secret-handed-over":
		return s.isOwnSubject(s.v.n.lower[start:end]) || s.isInFirstSentence(end) && s.isStatement(start, end) || s.isExample(start)
	case "private-handed-over":
		return s.isStatement(start, end) || s.isExample(start) || followsExampleMark(s.v.n.lower, start)
	case "secret-path":
		return s.isOwnSubject(s.v.n.lower[start:end]) || s.isExample(start)
	case "shell-command":
		first, last := s.wordsIn(start, end)
		return s.isInstaller(start) || s.isExample(start) || s.isForbidden(first) || s.isRefused(first, last)
	case "internal-address":
		first, last := s.wordsIn(start, end)
		return s.isExample(start) || s.isRefused(first, last)
	case "fake-markup":
		return s.isQuotedExample(start)
	}
	return s.isExample(start)
}

// How far an expression reaches before and after its literals.
const (
	reachBefore = 100
	reachBehind = 400
)

// findNearLiterals runs the expression around the literals.
func (r *regexpRule) findNearLiterals(t []byte, present *[256]bool, found func(start, end int)) {
	for _, l := range r.literals {
		if slices.ContainsFunc(l, func(c byte) bool { return !present[c] }) {
			continue
		}
		for from := 0; from < len(t); {
			at := bytes.Index(t[from:], l)
			if at < 0 {
				break
			}
			low := max(0, from+at-reachBefore)
			high := min(len(t), from+at+len(l)+reachBehind)
			if m := r.expression.FindIndex(t[low:high]); m != nil {
				found(low+m[0], low+m[1])
				from = max(from+at+len(l), low+m[1])
			} else {
				from = max(from+at+len(l), high-reachBefore)
			}
		}
	}
}

func (r *regexpRule) mayMatch(present *[256]bool) bool {
	for i := range len(r.needs) {
		if present[r.needs[i]] {
			return true
		}
	}
	return r.needs == ""
}
