package permission_test

import (
	"fmt"
	"mcpproxy/internal/clients"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"mcpproxy/internal/clients/permission"
)

const rulesPage = "../../../docs/reference/clients.md"

var shownRules = regexp.MustCompile(`(?s)(<!-- permissions ([a-z-]+) ([a-z]+) -->\n).*?(<!-- end -->)`)

// TestGuide checks that the page shows the rules of every client exactly as they are printed, for the surface in the
// marker.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile(rulesPage)
	if err != nil {
		t.Fatal(err)
	}
	e := account(t, &txtar.Archive{})
	missing := map[string]bool{}
	for _, id := range clients.ClientIDs() {
		missing[id] = true
	}
	got := shownRules.ReplaceAllStringFunc(string(text), func(part string) string {
		m := shownRules.FindStringSubmatch(part)
		r, err := permission.RecommendRulesForSurface(e, m[2], ours(), clients.Surface(m[3]))
		if err != nil {
			t.Fatal(err)
		}
		delete(missing, r.Client)
		return m[1] + strings.ReplaceAll(printed(r), e.Home, "~") + m[4]
	})
	if len(missing) > 0 {
		t.Errorf("the page does not show the rules of %v", missing)
	}
	if *update {
		if err := os.WriteFile(rulesPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(text) {
		t.Errorf("%s differs from the printed rules: go test ./internal/clients/permission -update", rulesPage)
	}
}

// printed returns the rules of a client in Markdown.
func printed(r permission.Rules) string {
	var b strings.Builder
	if r.Path == "" {
		b.WriteString("Its permissions are not in a file.\n\n")
	} else {
		fmt.Fprintf(&b, "In `%s`:\n\n```%s\n%s```\n\n", r.Path, r.Path[strings.LastIndexByte(r.Path, '.')+1:], strings.TrimSuffix(r.Text, "\n")+"\n")
	}
	if r.ByHand != "" {
		head, command, after, found := cutCommand(r.ByHand)
		b.WriteString(head + "\n\n")
		if found {
			fmt.Fprintf(&b, "```\n%s\n```\n\n%s\n\n", command, after)
		}
	}
	for _, note := range r.Notes {
		b.WriteString("- " + note + "\n")
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// cutCommand splits a text before and after its indented line.
func cutCommand(text string) (head, command, after string, found bool) {
	head, rest, found := strings.Cut(text, "\n  ")
	command, after, _ = strings.Cut(rest, "\n")
	return head, command, after, found
}
