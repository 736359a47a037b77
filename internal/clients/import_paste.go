package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"mcpproxy/internal/clients/textedit"
)

// PastedFormat is the detected format of a text.
type PastedFormat string

// The formats.
const (
	FormatJSON    PastedFormat = "json"
	FormatTOML    PastedFormat = "toml"
	FormatYAML    PastedFormat = "yaml"
	FormatCommand PastedFormat = "command"
	FormatURL     PastedFormat = "url"
)

// Words returns all formats, and "" for no format.
func (PastedFormat) Words() []string { return []string{"json", "toml", "yaml", "command", "url", ""} }

// ParsePasted parses pasted text. It accepts a client's file (see File.Parse), a part of one (such as a server with its
// name but without braces), a single server, a command line, or a URL. The command line may be a client's command that
// adds a server. Curly quotes are replaced if the text has no other quotes. The error is a *problem.Problem
// INVALID_CONFIG with line and column. The format is also returned with an error.
func ParsePasted(given []byte) (*ImportedServers, PastedFormat, error) {
	given = bytes.TrimPrefix(given, []byte(textedit.ByteOrderMark))
	if wrong := textedit.CheckSizeAndEncoding(given); wrong != nil {
		line, column := textedit.LineAndColumn(given, wrong.Offset)
		return nil, "", toParseProblem(&syntaxError{position{line, column}, wrong.Message, wrong.Hint})
	}
	trimmed := strings.TrimSpace(string(given))
	switch {
	case trimmed == "":
		return nil, "", toParseProblem(&syntaxError{position{1, 1}, "the text is empty", "paste a part of a client's file, a command, or a URL"})
	case json.Valid([]byte(trimmed)) && !strings.ContainsAny(trimmed[:1], "{["): // null, a number or a text
		root, err := parseAs(given, FormatJSON)
		return toImportedServers(root, err, FormatJSON, 0)
	case isURL(trimmed):
		s := newCommandServer()
		s.url = trimmed
		servers, err := s.toServersNode("")
		return toImportedServers(servers, err, FormatURL, 0)
	case isCommandLine(trimmed):
		servers, err := parseCommandLine(trimmed)
		return toImportedServers(servers, err, FormatCommand, 0)
	}
	format := map[fileFormat]PastedFormat{inJSON: FormatJSON, inTOML: FormatTOML, inYAML: FormatYAML}[detectFormat(given)]
	above := 0
	if trimmed[0] == '"' || strings.HasPrefix(trimmed, "“") || format == FormatYAML && strings.HasPrefix(trimmed, `'`) {
		// Members without the enclosing object.
		given, format, above = []byte("{\n"+string(given)+"\n}"), FormatJSON, 1
	}
	root, err := parseAs(given, format)
	if firstLine, _, _ := strings.Cut(trimmed, "\n"); err != nil && above > 0 && strings.HasSuffix(strings.TrimSpace(firstLine), ":") {
		// A quoted key before a block is YAML.
		if again, wrong := parseYAML(given[len("{\n") : len(given)-len("\n}")]); wrong == nil && again.isKind(objectNode) {
			if f, wrong := readServersNode(again, false); wrong == nil && len(f.Servers) > 0 {
				return f, FormatYAML, nil
			}
		}
	}
	if err != nil && format == FormatJSON && !bytes.Contains(given, []byte(`"`)) {
		straight := strings.NewReplacer("“", `"`, "”", `"`, "„", `"`).Replace(string(given))
		if again, wrong := parseAs([]byte(straight), format); wrong == nil {
			root, err = again, nil
		}
	}
	return toImportedServers(root, err, format, above)
}

// isCommandLine reports whether a text is a single command line.
func isCommandLine(s string) bool {
	for line := range strings.Lines(strings.ReplaceAll(s, "\\\r\n", "\\\n")) {
		if !strings.HasSuffix(line, "\\\n") && strings.HasSuffix(line, "\n") {
			return false // the command continues on the next line
		}
	}
	first, _, _ := strings.Cut(s, " ")
	return !strings.ContainsAny(s[:1], "{[\"#'<") && !strings.HasPrefix(s, "//") && !strings.HasPrefix(s, "/*") && !strings.HasPrefix(s, "“") &&
		!strings.HasPrefix(s, "---") && !strings.HasPrefix(s, "- ") && !strings.HasSuffix(first, ":") && !strings.Contains(s, " = ")
}

func parseAs(data []byte, f PastedFormat) (*node, error) {
	switch f {
	case FormatTOML:
		return parseTOML(data)
	case FormatYAML:
		return parseYAML(data)
	}
	return parseJSONOrYAML(data)
}

// toImportedServers returns the servers of a parsed text. above is the number of lines that were added above the text.
func toImportedServers(root *node, err error, f PastedFormat, above int) (*ImportedServers, PastedFormat, error) {
	var out *ImportedServers
	if err == nil {
		out, err = readServersNode(root, f == FormatCommand || f == FormatURL)
	}
	var m *syntaxError
	if errors.As(err, &m) && above > 0 {
		m.at.line = max(m.at.line-above, min(m.at.line, 1))
		if strings.HasSuffix(m.message, "ends too early") { // the error is at the end of the text
			m.hint = "is a closing bracket or quote missing?"
		}
	}
	if err != nil {
		return nil, f, toParseProblem(err)
	}
	shiftNoteLines(out.Notes, above)
	for _, s := range out.Servers {
		shiftNoteLines(s.Notes, above)
	}
	return out, f, nil
}

func shiftNoteLines(notes []Note, above int) {
	for i := range notes {
		notes[i].Line = max(notes[i].Line-above, 0)
	}
}
