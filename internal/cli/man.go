package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ManPages returns the manual pages of all commands by file name, such as mcpproxy-tools-list.1, generated from commands.md. They are for releases; the
// program does not contain them.
func ManPages(version string, date time.Time) map[string][]byte {
	root := newRun(Deps{}).root()
	pages := map[string][]byte{}
	for _, c := range append([]*cobra.Command{root}, visibleBelow(root)...) {
		var page manPage
		page.line(".TH %q 1 %q %q %q", strings.ToUpper(manName(c)), date.UTC().Format(time.DateOnly), "mcpproxy "+version, "MCPProxy")
		page.command(c)
		pages[manName(c)+".1"] = []byte(page.String())
	}
	return pages
}

// Completions returns the completion scripts by shell.
func Completions() (map[string][]byte, error) {
	scripts := map[string][]byte{}
	for _, shell := range shells {
		script, err := completionScript(newRun(Deps{}).root(), shell)
		if err != nil {
			return nil, err
		}
		scripts[shell] = script
	}
	return scripts, nil
}

// visibleBelow returns the visible commands below c, parents first.
func visibleBelow(c *cobra.Command) (all []*cobra.Command) {
	for _, child := range c.Commands() {
		if !child.Hidden {
			all = append(append(all, child), visibleBelow(child)...)
		}
	}
	return all
}

// manName returns the name of a command's page.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is a page in the language of man(7).
type manPage struct{ strings.Builder }

func (m *manPage) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// command writes all sections of a command.
func (m *manPage) command(c *cobra.Command) {
	m.line(".SH NAME\n%s \\- %s", roff(manName(c)), roff(c.Short))
	synopsis := strings.TrimSuffix(c.UseLine(), " [flags]")
	if c.HasAvailableSubCommands() {
		synopsis = c.CommandPath() + " <command>"
	}
	m.line(".SH SYNOPSIS\n.B %s\n[options]", roff(synopsis))
	m.line(".SH DESCRIPTION")
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	m.prose(about)
	m.commands(c)
	m.flags("OPTIONS", c.LocalFlags())
	if c.HasParent() {
		m.line(".PP\nThe options of every command are in\n.BR mcpproxy (1).")
	} else {
		m.about()
	}
	if c.HasExample() {
		m.line(".SH EXAMPLES")
		m.literal(c.Example)
	}
	if c.HasParent() {
		m.line(".SH SEE ALSO\n.BR %s (1)", roff(manName(c.Parent())))
	}
}

// commands lists the subcommands.
func (m *manPage) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	m.line(".SH COMMANDS")
	for _, child := range c.Commands() {
		if !child.Hidden {
			m.line(".TP\n.BR %s (1)\n%s", roff(manName(child)), roff(child.Short))
		}
	}
}

func (m *manPage) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	m.line(".SH %s", title)
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
			value = ` \fI` + roff(value) + `\fR`
		}
		m.line(".TP\n\\fB%s\\fR%s\n%s", roff(name), value, roff(usage))
	})
}

// about writes the sections of the program as a whole.
func (m *manPage) about() {
	m.line(".SH FILES\n.TP\n.I ~/.mcpproxy/mcp_config.json\nthe configuration, see \\fBmcpproxy config\\fR\n.TP\n.I ~/.mcpproxy\nthe log, decisions, the API key and the socket")
	m.line(".SH ENVIRONMENT\n.TP\n.B MCPPROXY_CONFIG\nthe configuration file\n.TP\n.B MCPPROXY_DATA_DIR\nthe data directory\n.TP\n.B NO_COLOR\nno colours")
	m.line(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 refused by policy, 4 daemon not reachable, 5 not found, 6 login needed, 7 timed out or overloaded, 130 interrupted.")
}

// prose writes paragraphs; indented ones stay as they are.
func (m *manPage) prose(text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			m.line(".PP")
		}
		if strings.Contains("\n"+paragraph, "\n ") {
			m.literal(paragraph)
		} else {
			m.line("%s", roff(paragraph))
		}
	}
}

// literal writes lines as they are.
func (m *manPage) literal(text string) {
	m.line(".nf\n%s\n.fi", roff(strings.TrimRight(text, "\n")))
}

// roff escapes text for man(7).
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
