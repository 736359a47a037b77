package cli

import (
	"fmt"

	"mcpproxy/internal/ops"
)

// maxUnhinted limits the servers in the notes of tools list.
const maxUnhinted = 3

// unhintedNote describes the gain of enforcing inferred hints; "" for none.
func unhintedNote(u *ops.Unhinted) string {
	if u == nil {
		return ""
	}
	say, look := "tools say", "look like reads"
	if u.Tools == 1 {
		say = "tool says"
	}
	if u.Reads == 1 {
		look = "looks like a read"
	}
	return fmt.Sprintf("%d %s nothing; %d %s: `mcpproxy upstream set %s --infer-hints enforce`", u.Tools, say, u.Reads, look, oneLine(u.Server))
}

func noteUnhinted(p *printer, all []ops.Unhinted) {
	for i := range all[:min(len(all), maxUnhinted)] {
		p.note("%s", unhintedNote(&all[i]))
	}
}
