package cli

import (
	"bytes"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
)

// wrapHelpOutput makes all commands wrap their help to the terminal's width.
func (r *invocation) wrapHelpOutput(root *cobra.Command) {
	write := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		to := cmd.OutOrStdout()
		var text bytes.Buffer
		cmd.SetOut(&text)
		write(cmd, args)
		cmd.SetOut(to)
		_ = r.writePaged([]byte(wrapHelpText(text.String(), r.width))) // a help function cannot return an error
	})
}

// wrapHelpText wraps a help text to a width and keeps descriptions in their column. It does not wrap examples, so that
// users can copy them.
func wrapHelpText(text string, width int) string {
	if width == 0 {
		return text
	}
	var out strings.Builder
	about, rest, _ := strings.Cut(text, "\nUsage:")
	for paragraph := range strings.SplitSeq(about, "\n\n") {
		if hasLineWiderThan(paragraph, width) && !strings.Contains("\n"+paragraph, "\n ") {
			joined := strings.ReplaceAll(strings.TrimRight(paragraph, "\n"), "\n", " ")
			about = strings.Replace(about, strings.TrimRight(paragraph, "\n"), joined, 1)
		}
	}
	examples := false
	for line := range strings.Lines(about + "\nUsage:" + rest) {
		line = strings.TrimRight(line, "\n")
		examples = line == "Examples:" || examples && line != ""
		if examples || lipgloss.Width(line) <= width {
			out.WriteString(line + "\n")
			continue
		}
		head, rest := splitLastColumn(line)
		if width-lipgloss.Width(head) < width/3 { // the description starts on the next line
			out.WriteString(strings.TrimRight(head, " ") + "\n")
			head = "        "
		}
		out.WriteString(head)
		indent := strings.Repeat(" ", lipgloss.Width(head))
		out.WriteString(strings.Join(wrapLine(rest, max(width-len(indent), minWrapWidth)), "\n"+indent) + "\n")
	}
	return out.String()
}

func hasLineWiderThan(text string, width int) bool {
	for line := range strings.Lines(text) {
		if lipgloss.Width(line) > width {
			return true
		}
	}
	return false
}

// splitLastColumn splits a line before its last column. If the line has no columns, head is the indentation.
func splitLastColumn(line string) (head, rest string) {
	rest = strings.TrimLeft(line, " ")
	if i := strings.LastIndex(strings.TrimRight(rest, " "), "  "); i >= 0 {
		rest = rest[i+2:]
	}
	return line[:len(line)-len(rest)], rest
}
