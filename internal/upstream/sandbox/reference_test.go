package sandbox

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the reference")

// reference returns docs/reference/sandbox.md.
func reference() string {
	var b strings.Builder
	b.WriteString("# Files that a sandbox can read\n\n<!-- Generated from internal/upstream/sandbox: go test ./internal/upstream/sandbox -update -->\n\n" +
		"See [Run a server you do not trust](../guide/sandbox.md) for the keys of `sandbox`.\n\n" +
		"## What each sandbox can read\n\nThe installation of its program, and these folders and files of the system:\n\n")
	for _, p := range systemFolders {
		fmt.Fprintf(&b, "- `%s`\n", p)
	}
	b.WriteString("\nNot these parts of them:\n\n")
	for _, p := range systemSecrets {
		fmt.Fprintf(&b, "- `%s`\n", p)
	}
	b.WriteString("\n`/proc` shows only the server's own processes. Of `/dev`, it can use `" + strings.Join(devices, "`, `") + "`.\n\n" +
		"## What mode `on` cannot read of the home folder\n\nThese paths are relative to the home folder. A folder or file of the home folder that appears while the server runs, next to one of these, can be read after a restart of the server. Symbolic links in the home folder are not followed to other places. " +
		"To allow one of these paths, name it in `read`. No sandbox can read or write the data directory and the configuration file of MCPProxy.\n")
	for _, g := range SecretPaths() {
		fmt.Fprintf(&b, "\n### %s\n\n", g.Title)
		for _, p := range g.Paths {
			fmt.Fprintf(&b, "- `%s`\n", p)
		}
	}
	b.WriteString("\n## System calls that are denied\n\nA call that this version does not know does not exist for the server. Connected pairs of stream sockets can be made; other unix sockets cannot.\n")
	for line := range strings.Lines(syscallsText) {
		line = strings.TrimRight(line, "\n")
		calls, ok := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case ok:
			fmt.Fprintf(&b, "`%s`\n", strings.Join(strings.Fields(calls), "` `"))
		default:
			fmt.Fprintf(&b, "\n### %s\n\n", strings.ToUpper(line[:1])+line[1:])
		}
	}
	return b.String()
}

func TestReferenceIsCurrent(t *testing.T) {
	const file = "../../../docs/reference/sandbox.md"
	want := reference()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%v: run go test ./internal/upstream/sandbox -update", err)
	}
}
