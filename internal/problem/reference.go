package problem

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed reference.md
var referenceText string

// Reference is the reference of the codes in Markdown.
func Reference() []byte {
	var rows, exitRows []string
	for _, c := range slices.Sorted(maps.Keys(codes)) {
		m := codes[c]
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %d | %d | %d |", c, m.meaning, m.http, m.rpc, m.exit))
	}
	for _, e := range exits {
		exitRows = append(exitRows, fmt.Sprintf("| %d | %s |", e.code, e.meaning))
	}
	return []byte(strings.NewReplacer(
		"{{codes}}", strings.Join(rows, "\n"),
		"{{exits}}", strings.Join(exitRows, "\n"),
	).Replace(referenceText))
}
