package cli

import (
	"fmt"

	"mcpproxy/internal/ops"
)

// maxUnhinted is for how many servers tools list says so.
const maxUnhinted = 3

// unhinted is what enforcing what is inferred would be good for; "" for nothing.
func unhinted(u *ops.Unhinted) string {
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
		p.note("%s", unhinted(&all[i]))
	}
}
