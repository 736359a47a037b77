package scan

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated part of the page")

const rulesPage = "../../../docs/reference/scanner.md"

// TestGuide: the table of rules in the page is that of the program.
func TestGuide(t *testing.T) {
	data, err := os.ReadFile(rulesPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- rules: begin -->\n", "<!-- rules: end -->\n"
	head, rest, _ := strings.Cut(string(data), begin)
	_, tail, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatal("the page has no marks for the table of rules")
	}
	want := head + begin + tableOfRules() + end + tail
	if string(data) == want {
		return
	}
	if !*update {
		t.Fatal("the table of rules is not current: go test ./internal/catalog/scan -update")
	}
	if err := os.WriteFile(rulesPage, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func tableOfRules() string {
	type row struct {
		name     string
		severity Severity
		reasons  []string
	}
	var rows []row
	add := func(name string, severity Severity, reason string) {
		k := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
		if k < 0 {
			rows = append(rows, row{name: name, severity: severity})
			k = len(rows) - 1
		}
		rows[k].severity = max(rows[k].severity, severity)
		if !slices.Contains(rows[k].reasons, reason) {
			rows[k].reasons = append(rows[k].reasons, reason)
		}
	}
	for _, r := range slices.Concat(defaultGrammar().rules[:defaultGrammar().firstCue], []scanRule{ruleCues, ruleHidden, ruleSmuggled, ruleBidi, ruleControl, ruleConfusable, ruleFar, ruleOddName, ruleHint, ruleReserved, ruleClassifier}) {
		add(r.name, r.severity, r.reason)
	}
	for _, o := range classWords().rules {
		add(o.name, SeverityReview, o.reason)
	}
	for _, r := range spellingRules() {
		add(r.name, max(r.prose, r.value), r.reason)
	}
	add("too-large", SeverityReview, "exceeds a limit, or cannot be scanned in full")
	add("incomplete", SeverityReview, "could not be read, or a rule failed")
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	b.WriteString("| rule | at most | a definition that … |\n| --- | --- | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.name, r.severity, strings.Join(r.reasons, "; "))
	}
	return b.String()
}
