package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/cli"
)

var releaseDate = time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)

// Every command has a page with the text of commands.md.
func TestManPages(t *testing.T) {
	t.Parallel()
	pages := manPages("1.2.3", releaseDate)
	root := cli.NewRootCommand()
	all := append(visibleSubcommands(root), root)
	if len(pages) != len(all) {
		t.Errorf("%d pages for %d commands", len(pages), len(all))
	}
	golden(t, "man", string(pages["mcpproxy-upstream-set.1"]))
	for _, c := range all {
		page := string(pages[manPageName(c)+".1"])
		for _, want := range []string{`"2026-01-15" "mcpproxy 1.2.3"`, ".SH NAME\n", ".SH EXAMPLES\n"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s has no %s", c.CommandPath(), want)
			}
		}
	}
}

// Readers of manual pages show the pages without a warning.
func TestManPagesAreCorrect(t *testing.T) {
	t.Parallel()
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("there is no mandoc")
	}
	dir := t.TempDir()
	args := []string{"-Tlint", "-Wwarning"}
	for name, page := range manPages("1.2.3", releaseDate) {
		args = append(args, filepath.Join(dir, name))
		if err := os.WriteFile(args[len(args)-1], page, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(mandoc, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRoff(t *testing.T) {
	t.Parallel()
	if got, want := escapeRoff(".a\n'b' -c \\d"), "\\&.a\n\\(aqb\\(aq \\-c \\ed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script, err := completionScript(shell); err != nil || len(script) < 1000 {
			t.Errorf("%s: %d bytes, %v", shell, len(script), err)
		}
	}
	if _, err := completionScript("csh"); err == nil {
		t.Error("there is a script for a shell that has none")
	}
}
