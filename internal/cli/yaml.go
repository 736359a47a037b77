package cli

import (
	"bytes"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// jsonToYAML converts JSON to YAML with the same order and numbers. A string is unquoted only if no YAML parser can
// misread it. Otherwise it is a JSON string, which is valid YAML.
func jsonToYAML(raw []byte) []byte {
	var w yamlWriter
	w.writeValue(raw, "", true)
	return w.out.Bytes()
}

type yamlWriter struct{ out bytes.Buffer }

// writeValue writes a value. raw is valid JSON, because this program encoded it. An object or array starts on a new
// line unless first is set.
func (w *yamlWriter) writeValue(raw []byte, indent string, first bool) {
	empty := ""
	begin := func() {
		if !first {
			if n := w.out.Len(); n > 0 && w.out.Bytes()[n-1] != '\n' {
				w.out.WriteByte('\n')
			}
			w.out.WriteString(indent)
		}
		first, empty = false, ""
	}
	switch wirejson.Kind(raw) {
	case '{':
		empty = "{}\n"
		_ = wirejson.EachMember(raw, func(name, value []byte) error {
			begin()
			w.out.WriteString(quoteIfNeeded(string(name)) + ":")
			w.writeValue(value, indent+"  ", false)
			return nil
		})
	case '[':
		empty = "[]\n"
		_ = wirejson.EachElement(raw, func(value []byte) error {
			begin()
			w.out.WriteString("-")
			container := wirejson.Kind(value) == '{' || wirejson.Kind(value) == '['
			if container {
				w.out.WriteByte(' ')
			}
			w.writeValue(value, indent+"  ", container)
			return nil
		})
	default:
		w.writeScalar(raw, indent)
	}
	if empty != "" {
		if !first {
			w.out.WriteByte(' ')
		}
		w.out.WriteString(empty)
	}
}

func (w *yamlWriter) writeScalar(raw []byte, indent string) {
	if w.out.Len() > 0 {
		w.out.WriteByte(' ')
	}
	raw = bytes.TrimSpace(raw)
	text, isText := wirejson.String(raw)
	switch {
	case isText && fitsBlockScalar(text):
		w.writeBlockScalar(text, indent)
	case isText:
		w.out.WriteString(quoteIfNeeded(text) + "\n")
	case wirejson.Kind(raw) == '0':
		w.out.WriteString(normalizeExponent(string(raw)) + "\n")
	default:
		w.out.WriteString(string(raw) + "\n")
	}
}

// fitsBlockScalar reports whether s can and should be written as a block scalar.
func fitsBlockScalar(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") || strings.TrimSpace(s) == "" {
		return false
	}
	return toPrintable(s) == s && !strings.Contains(s, "\t") && !strings.Contains(s, " \n") && !strings.HasSuffix(s, " ")
}

func (w *yamlWriter) writeBlockScalar(s, indent string) {
	if indent == "" {
		indent = "  "
	}
	text, mark := strings.TrimRight(s, "\n"), "|"
	switch len(s) - len(text) {
	case 0:
		mark = "|-"
	case 1:
	default:
		mark = "|+"
	}
	w.out.WriteString(mark + "\n")
	for line := range strings.Lines(strings.TrimSuffix(s, "\n") + "\n") {
		if line != "\n" {
			w.out.WriteString(indent)
		}
		w.out.WriteString(line)
	}
}

// needsNoQuotes reports whether s can be written without quotes in all versions of YAML.
func needsNoQuotes(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '/'
		inner := letter || '0' <= c && c <= '9' || strings.IndexByte(".@+-()", c) >= 0 || c == ' ' && i > 0 && s[i-1] != ' '
		if i == 0 && !letter || !inner {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf":
		return false
	}
	return !strings.HasSuffix(s, " ")
}

// normalizeExponent formats a number so that YAML 1.1 parsers accept it: 1e5 becomes 1.0e+5.
func normalizeExponent(number string) string {
	mantissa, power, ok := strings.Cut(strings.ToLower(number), "e")
	if !ok {
		return number
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if !strings.HasPrefix(power, "-") && !strings.HasPrefix(power, "+") {
		power = "+" + power
	}
	return mantissa + "e" + power
}

func quoteIfNeeded(s string) string {
	if needsNoQuotes(s) {
		return s
	}
	quoted, _ := wirejson.MarshalWithoutHTMLEscape(s) // a string can always be encoded
	return string(escapeHiddenInJSON(quoted))
}
