package cli

import (
	"bytes"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// toYAML writes a JSON text as YAML, in the same order and with the same
// numbers. Strings are bare only where no reader could take them for anything
// else; YAML reads a JSON string as it is.
func toYAML(raw []byte) []byte {
	var w yamlWriter
	w.value(raw, "", true)
	return w.out.Bytes()
}

type yamlWriter struct{ out bytes.Buffer }

// value writes a value. The text was encoded here, so that it is sound. A
// container that is not first begins on the next line; one that is first goes on
// where the line is.
func (w *yamlWriter) value(raw []byte, indent string, first bool) {
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
		_ = wirejson.Members(raw, func(name, value []byte) error {
			begin()
			w.out.WriteString(bareOrQuoted(string(name)) + ":")
			w.value(value, indent+"  ", false)
			return nil
		})
	case '[':
		empty = "[]\n"
		_ = wirejson.Elements(raw, func(value []byte) error {
			begin()
			w.out.WriteString("-")
			container := wirejson.Kind(value) == '{' || wirejson.Kind(value) == '['
			if container {
				w.out.WriteByte(' ')
			}
			w.value(value, indent+"  ", container)
			return nil
		})
	default:
		w.scalar(raw, indent)
	}
	if empty != "" {
		if !first {
			w.out.WriteByte(' ')
		}
		w.out.WriteString(empty)
	}
}

func (w *yamlWriter) scalar(raw []byte, indent string) {
	if w.out.Len() > 0 {
		w.out.WriteByte(' ')
	}
	raw = bytes.TrimSpace(raw)
	text, isText := wirejson.String(raw)
	switch {
	case isText && literal(text):
		w.block(text, indent)
	case isText:
		w.out.WriteString(bareOrQuoted(text) + "\n")
	case wirejson.Kind(raw) == '0':
		w.out.WriteString(exponent(string(raw)) + "\n")
	default:
		w.out.WriteString(string(raw) + "\n")
	}
}

// literal reports whether s reads best as lines of its own, and can.
func literal(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") || strings.TrimSpace(s) == "" {
		return false
	}
	return printable(s) == s && !strings.Contains(s, "\t") && !strings.Contains(s, " \n") && !strings.HasSuffix(s, " ")
}

func (w *yamlWriter) block(s, indent string) {
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

// bare reports whether s means itself everywhere in YAML: words of letters, digits and
// a few signs that have no other meaning there, which no reader takes for
// something else than text.
func bare(s string) bool {
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

// exponent is a number as readers of YAML 1.1 know it too: 1e5 is 1.0e+5.
func exponent(number string) string {
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

func bareOrQuoted(s string) string {
	if bare(s) {
		return s
	}
	quoted, _ := wirejson.Marshal(s) // a string can always be encoded
	return string(escapeHidden(quoted))
}
