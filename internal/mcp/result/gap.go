package result

import (
	"fmt"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// The units of paging.
const (
	Characters = "characters" // for texts
	elements   = "elements"   // for arrays
	members    = "members"    // for objects
)

// entryUnit returns the unit of an array or object.
func entryUnit(v []byte) string {
	if wirejson.Kind(v) == '{' {
		return members
	}
	return elements
}

// omission describes a gap: of the value at path, only the first kept units remain. An empty path means the JSON text
// of the whole result.
type omission struct {
	path        string
	kept, total int
	unit        string
}

// continueLine describes the gap. If there is a handle, it also contains the instructions for reading on.
func (g omission) continueLine(handle string) string {
	of, path := "the result", ""
	if g.path != "" {
		of, path = strings.Map(replaceControlChar, g.path), `, "path": `+string(wirejson.AppendString(nil, g.path))
	}
	line := fmt.Sprintf("%d of %d %s of %s", g.kept, g.total, g.unit, of)
	if handle == "" {
		return line
	}
	return line + fmt.Sprintf(`; continue with read_result {"handle": %s%s, "offset": %d}`, wirejson.AppendString(nil, handle), path, g.kept)
}

// replaceControlChar returns a visible replacement for a control character.
func replaceControlChar(r rune) rune {
	if r < ' ' || r == '\u2028' || r == '\u2029' {
		return ' '
	}
	return r
}

// gapLineSize returns the size of the line for a gap at path inside a JSON string, with its line break. The numbers in
// the line are at most most.
func gapLineSize(path, handle string, most int) int {
	return len(wirejson.AppendString(nil, omission{path, most, most, Characters}.continueLine(handle)))
}
