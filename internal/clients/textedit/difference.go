package textedit

import (
	"bytes"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"mcpproxy/internal/store/redact"
)

// headLines is the number of lines of a unified difference before the lines of its first hunk.
const headLines = 4

// Diff returns the line difference of two texts: each line after "- ", "+ " or two spaces, with some context, and
// secrets masked. An ellipsis replaces lines that are far from any change.
func Diff(before, after []byte) string {
	unified := string(diff.Diff("before", wholeLines(before), "after", wholeLines(after)))
	lines := strings.Split(strings.TrimSuffix(unified, "\n"), "\n")
	lines = lines[min(headLines, len(lines)):]
	for i, line := range lines {
		if strings.HasPrefix(line, "@@") {
			lines[i] = "  …"
		} else {
			lines[i] = line[:1] + " " + line[1:]
		}
	}
	return redact.Text(strings.Join(lines, "\n"))
}

// wholeLines returns a text with LF line endings, also after its last line.
func wholeLines(text []byte) []byte {
	text = bytes.TrimSuffix(toLineFeeds(text), []byte("\n"))
	if len(text) == 0 {
		return nil
	}
	return append(text, '\n')
}
