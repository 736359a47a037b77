package cli

import (
	"fmt"

	"mcpproxy/internal/ops"
)

// maxUnhinted limits the number of servers in the notes of `tools list`.
const maxUnhinted = 3

// inferHintsAdvice describes the benefit of enforcing inferred hints. It returns "" if there is none.
func inferHintsAdvice(u *ops.Unhinted) string {
	if u == nil {
		return ""
	}
	say, look := "tools have", "look like reads"
	if u.Tools == 1 {
		say = "tool has"
	}
	if u.Reads == 1 {
		look = "looks like a read"
	}
	return fmt.Sprintf("%d %s no hints; %d %s: `mcpproxy upstream set %s --infer-hints enforce`", u.Tools, say, u.Reads, look, toOneLine(u.Server))
}

func addUnhintedNotes(p *printer, all []ops.Unhinted) {
	for i := range all[:min(len(all), maxUnhinted)] {
		p.addNote("%s", inferHintsAdvice(&all[i]))
	}
}
