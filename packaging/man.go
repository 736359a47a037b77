package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mcpproxy/internal/cli"
)

// manPages returns the manual pages of all commands by file name, such as mcpproxy-tools-list.1.
func manPages(version string, date time.Time) map[string][]byte {
	root := cli.NewRootCommand()
	pages := map[string][]byte{}
	for _, c := range append([]*cobra.Command{root}, visibleSubcommands(root)...) {
		var page manPage
		page.writeLine(".TH %q 1 %q %q %q", strings.ToUpper(manPageName(c)), date.UTC().Format(time.DateOnly), "mcpproxy "+version, "MCPProxy")
		page.writeCommand(c)
		pages[manPageName(c)+".1"] = []byte(page.String())
	}
	return pages
}

// completionScript returns the completion script of a shell.
func completionScript(shell string) ([]byte, error) {
	var script bytes.Buffer
	if code := cli.Run(context.Background(), []string{"completion", shell}, cli.Deps{Stdout: &script}); code != 0 {
		return nil, fmt.Errorf("completion %s: exit code %d", shell, code)
	}
	return script.Bytes(), nil
}

// visibleSubcommands returns the visible commands below c, parents first.
func visibleSubcommands(c *cobra.Command) (all []*cobra.Command) {
	for _, child := range c.Commands() {
		if !child.Hidden {
			all = append(append(all, child), visibleSubcommands(child)...)
		}
	}
	return all
}

// manPageName returns the name of a command's page.
func manPageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is a page in the language of man(7).
type manPage struct{ strings.Builder }

func (m *manPage) writeLine(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// writeCommand writes all sections of a command.
func (m *manPage) writeCommand(c *cobra.Command) {
	m.writeLine(".SH NAME\n%s \\- %s", escapeRoff(manPageName(c)), escapeRoff(c.Short))
	synopsis := strings.TrimSuffix(c.UseLine(), " [flags]")
	if c.HasAvailableSubCommands() {
		synopsis = c.CommandPath() + " <command>"
	}
	m.writeLine(".SH SYNOPSIS\n.B %s\n[options]", escapeRoff(synopsis))
	m.writeLine(".SH DESCRIPTION")
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	m.writeParagraphs(about)
	m.writeSubcommands(c)
	m.writeFlags("OPTIONS", c.LocalFlags())
	if c.HasParent() {
		m.writeLine(".PP\nThe options of every command are in\n.BR mcpproxy (1).")
	} else {
		m.writeProgramSections()
	}
	if c.HasExample() {
		m.writeLine(".SH EXAMPLES")
		m.writeVerbatim(c.Example)
	}
	if c.HasParent() {
		m.writeLine(".SH SEE ALSO\n.BR %s (1)", escapeRoff(manPageName(c.Parent())))
	}
}

// writeSubcommands lists the subcommands.
func (m *manPage) writeSubcommands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	m.writeLine(".SH COMMANDS")
	for _, child := range c.Commands() {
		if !child.Hidden {
			m.writeLine(".TP\n.BR %s (1)\n%s", escapeRoff(manPageName(child)), escapeRoff(child.Short))
		}
	}
}

func (m *manPage) writeFlags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	m.writeLine(".SH %s", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			value = ` \fI` + escapeRoff(value) + `\fR`
		}
		m.writeLine(".TP\n\\fB%s\\fR%s\n%s", escapeRoff(name), value, escapeRoff(usage))
	})
}

// writeProgramSections writes the sections of the program as a whole.
func (m *manPage) writeProgramSections() {
	m.writeLine(".SH FILES\n.TP\n.I ~/.mcpproxy/mcp_config.json\nthe configuration, see \\fBmcpproxy config\\fR\n.TP\n.I ~/.mcpproxy\nthe log, decisions, the API key and the socket")
	m.writeLine(".SH ENVIRONMENT\n.TP\n.B MCPPROXY_CONFIG\nthe configuration file\n.TP\n.B MCPPROXY_DATA_DIR\nthe data directory\n.TP\n.B NO_COLOR\nno colours")
	m.writeLine(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 refused by policy, 4 daemon not reachable, 5 not found, 6 login needed, 7 timed out or overloaded, 130 interrupted.")
}

// writeParagraphs writes paragraphs; indented ones stay as they are.
func (m *manPage) writeParagraphs(text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			m.writeLine(".PP")
		}
		if strings.Contains("\n"+paragraph, "\n ") {
			m.writeVerbatim(paragraph)
		} else {
			m.writeLine("%s", escapeRoff(paragraph))
		}
	}
}

// writeVerbatim writes lines as they are.
func (m *manPage) writeVerbatim(text string) {
	m.writeLine(".nf\n%s\n.fi", escapeRoff(strings.TrimRight(text, "\n")))
}

// escapeRoff escapes text for man(7).
func escapeRoff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
