package result

import (
	"fmt"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// The units that a value is paged by.
const (
	Characters = "characters" // of a text
	elements   = "elements"   // of an array
	members    = "members"    // of an object
)

// unit returns what an array or an object is paged by.
func unit(v []byte) string {
	if wirejson.Kind(v) == '{' {
		return members
	}
	return elements
}

// gap is where something was left out: of the value at the path the first are
// there. The path is empty for the JSON text of the whole result.
type gap struct {
	path        string
	kept, total int
	unit        string
}

// line says what is there, and exactly how to go on, if a handle leads there.
func (g gap) line(handle string) string {
	of, path := "the result", ""
	if g.path != "" {
		of, path = strings.Map(shown, g.path), `, "path": `+string(wirejson.AppendString(nil, g.path))
	}
	line := fmt.Sprintf("%d of %d %s of %s", g.kept, g.total, g.unit, of)
	if handle == "" {
		return line
	}
	return line + fmt.Sprintf(`; continue with read_result {"handle": %s%s, "offset": %d}`, wirejson.AppendString(nil, handle), path, g.kept)
}

// shown returns what stands for a character in a line, which is one.
func shown(r rune) rune {
	if r < ' ' || r == '\u2028' || r == '\u2029' {
		return ' '
	}
	return r
}

// lineSize returns what the line of a gap at the path takes inside a JSON string,
// with its line break, when no number in it is greater than most.
func lineSize(path, handle string, most int) int {
	return len(wirejson.AppendString(nil, gap{path, most, most, Characters}.line(handle)))
}
