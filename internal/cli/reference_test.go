package cli

import (
	"os"
	"strings"
	"testing"
)

func TestReferenceIsCurrent(t *testing.T) {
	const path = "../../docs/reference/cli.md"
	got := string(generateReference())
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is out of date: run go test ./internal/cli -update", path)
	}
}

func TestReferenceHoldsEveryCommand(t *testing.T) {
	t.Parallel()
	text := string(generateReference())
	root := newInvocation(Deps{}).newRootCommand()
	root.InitDefaultHelpCmd()
	for _, c := range allCommands(root)[1:] {
		if shown := strings.Contains(text, "\n## "+c.CommandPath()+"\n"); shown == c.Hidden {
			t.Errorf("%s: hidden is %v, but in the reference is %v", c.CommandPath(), c.Hidden, shown)
		}
	}
}
