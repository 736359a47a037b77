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
			fmt.Fprintf(&out, "\n## %s\n\n| code | name | what it finds | why it matters | `--fix` |\n| --- | --- | --- | --- | --- |\n", strings.ToUpper(string(group[:1]))+string(group[1:]))
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s | %s | %s |\n", c.Code, c.Name, c.Wrong, c.Why, cmp.Or(c.Fix, "no"))
	}
	return []byte(out.String())
}

const referenceHead = `# Checks of the doctor

<!-- Generated from the table in internal/ops/doctor: go test ./internal/ops/doctor -update -->

` + "`mcpproxy doctor`" + ` looks for these, in this order; [the guide](../guide/doctor.md) says how to use it. Codes and names are stable. What each
says beside that, the subject and the command that mends it, depends on what it finds.
`
