package doctor

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the reference")

func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "reference", "doctor.md")
	if *update {
		if err := os.WriteFile(path, referenceMarkdown(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, referenceMarkdown()) {
		t.Errorf("%s is out of date (%v): run go test ./internal/ops/doctor -update", path, err)
	}
}

// referenceMarkdown returns the Markdown reference of all checks.
func referenceMarkdown() []byte {
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
