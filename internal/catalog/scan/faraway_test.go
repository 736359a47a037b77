package scan

import (
	"strings"
	"testing"
)

// TestOutOfSight: a text behind many spaces or empty lines needs review; the layout of a docstring or a table does not.
func TestOutOfSight(t *testing.T) {
	t.Parallel()
	for _, blank := range []string{" ", "\t", "\u00a0", "\u3000", "\u2003", "\u2002 ", "\n", " \n", "\r\n", "\u2028", "\u00a0\n", "\u2800", "\u3164"} {
		text := "Returns the time." + strings.Repeat(blank, 300) + "The zone is optional."
		if r := ScanText("x", text); r.Verdict == Clean {
			t.Errorf("not found behind %q", blank)
		}
	}
	for _, text := range []string{
		"Plots data.\n\n    Args:\n        data:    rows\n\n\n\n    Returns:\n        path\n",
		"| name" + strings.Repeat(" ", 50) + "| value |",
		strings.Repeat(" ", 500) + "Returns the time." + strings.Repeat("\n", 50),
	} {
		if r := ScanText("x", text); r.Verdict != Clean {
			t.Errorf("%q: %+v", text, r.Findings)
		}
	}
}
