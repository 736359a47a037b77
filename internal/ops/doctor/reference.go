package doctor

import (
	"cmp"
	"fmt"
	"strings"
)

// ReferenceMarkdown returns the Markdown reference of all checks.
func ReferenceMarkdown() []byte {
	var out strings.Builder
	out.WriteString(referenceHead)
	var group CheckGroup
	for _, c := range checks {
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(&out, "\n## %s\n\n| code | name | finding | effect | `--fix` |\n| --- | --- | --- | --- | --- |\n", strings.ToUpper(string(group[:1]))+string(group[1:]))
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s | %s | %s |\n", c.Code, c.Name, c.Wrong, c.Why, cmp.Or(c.Fix, "no"))
	}
	return []byte(out.String())
}

const referenceHead = `# Checks of the doctor

<!-- Generated from the table in internal/ops/doctor: go test ./internal/ops/doctor -update -->

` + "`mcpproxy doctor`" + ` runs these checks, in this order. See [the guide](../guide/doctor.md). Codes and names are stable. The text, the
subject and the repair command of a finding depend on the problem.
`
