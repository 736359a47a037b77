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

// exits lists the exit codes with their meaning.
var exits = []struct {
	code    int
	meaning string
}{
	{ExitDone, "Done."},
	{ExitFailed, "Failed."},
	{ExitUsage, "Invalid usage: the command line, or a value in it."},
	{ExitRefused, "Rejected by policy."},
	{ExitNoDaemon, "The daemon cannot be reached."},
	{ExitNotFound, "Not found."},
	{ExitLogin, "A server requires a login."},
	{ExitTryAgain, "Timed out, overloaded or not available. Try again."},
	{ExitInterrupted, "Interrupted."},
}

// Reference returns the Markdown reference of the error codes and exit codes.
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

// Known reports whether the code is declared in this package.
func (c Code) Known() bool { _, ok := codes[c]; return ok }
