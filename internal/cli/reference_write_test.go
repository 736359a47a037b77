package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const referenceHead = `# Command line

<!-- Generated from the commands in internal/cli: go test ./internal/cli -update -->

%s

%s
Most commands ask the daemon of the data directory, over its socket. These work without one: demo, serve, service, stdio (which starts one), config, connect, disconnect,
permissions, doctor, status, secrets, completion, help, version, and those of upstream that change the configuration file (add, import, set, enable, disable, remove).
Data goes to stdout; messages and errors go to stderr. The exit codes are listed in [errors.md](errors.md#exit-codes).

`

// generateReference returns the reference of the commands in Markdown.
func generateReference() []byte {
	root := newInvocation(Deps{}).newRootCommand()
	root.InitDefaultHelpCmd()
	var out strings.Builder
	fmt.Fprintf(&out, referenceHead, root.Long, fencedBlock(root.Example))
	out.WriteString("| command | |\n| --- | --- |\n")
	visible := visibleSubcommands(root)
	for _, c := range visible {
		fmt.Fprintf(&out, "| %s | %s |\n", sectionLink(c), c.Short)
	}
	fmt.Fprintf(&out, "\n## Flags of every command\n\n%s\nAnd `--help`, which also shows what is here.\n", fencedBlock(root.PersistentFlags().FlagUsages()))
	for _, c := range visible {
		writeCommandSection(&out, c)
	}
	return []byte(out.String())
}

// writeCommandSection writes the section of one command. Inherited flags appear once.
func writeCommandSection(out *strings.Builder, c *cobra.Command) {
	text, synopsis := c.Long, c.UseLine()
	if text == "" {
		text = c.Short + "."
	}
	if c.HasAvailableSubCommands() {
		synopsis = c.CommandPath() + " <command>"
	}
	fmt.Fprintf(out, "\n## %s\n\n%s\n\n%s", c.CommandPath(), text, fencedBlock(synopsis))
	if flags := c.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(out, "\nFlags:\n\n%s", fencedBlock(flags.FlagUsages()))
	}
	if c.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n\n%s", fencedBlock(c.Example))
	}
}

// sectionLink returns a link to the section of a command.
func sectionLink(c *cobra.Command) string {
	path := c.CommandPath()
	return fmt.Sprintf("[`%s`](#%s)", path, strings.ReplaceAll(path, " ", "-"))
}

// fencedBlock returns text as a fenced code block without its indentation.
func fencedBlock(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n "), "\n")
	indent := len(text)
	for _, line := range lines {
		indent = min(indent, len(line)-len(strings.TrimLeft(line, " ")))
	}
	for i, line := range lines {
		lines[i] = line[indent:]
	}
	return "```\n" + strings.Join(lines, "\n") + "\n```\n"
}

// visibleSubcommands returns the visible commands below c, parents first.
func visibleSubcommands(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(allCommands(c)[1:], func(c *cobra.Command) bool { return c.Hidden })
}
