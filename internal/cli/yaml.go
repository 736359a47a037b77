package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"mcpproxy/internal/rawjson"
)

// toYAML writes a JSON text as YAML, in the same order and with the same
// numbers. Strings are bare only where no reader could take them for anything
// else; YAML reads a JSON string as it is.
func toYAML(raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	w := yamlWriter{d: d}
	w.value(w.next(), "", true)
	return w.out.Bytes()
}

type yamlWriter struct {
	d   *json.Decoder
	out bytes.Buffer
}

// next returns the next token. The text was encoded here, so that it is sound.
func (w *yamlWriter) next() json.Token {
	token, _ := w.d.Token()
	return token
}

// value writes the value that begins with token. A container that is not first
// begins on the next line; one that is first goes on where the line is.
func (w *yamlWriter) value(token json.Token, indent string, first bool) {
	switch token {
	case json.Delim('{'):
		w.members(indent, first)
	case json.Delim('['):
		w.elements(indent, first)
	default:
		w.scalar(token, indent)
	}
}

func (w *yamlWriter) members(indent string, first bool) {
	if !w.d.More() {
		w.empty("{}", first)
		return
	}
	for w.d.More() {
		w.begin(indent, &first)
		w.out.WriteString(bareOrQuoted(w.next()) + ":")
		w.value(w.next(), indent+"  ", false)
	}
	w.next()
}

func (w *yamlWriter) elements(indent string, first bool) {
	if !w.d.More() {
		w.empty("[]", first)
		return
	}
	for w.d.More() {
		w.begin(indent, &first)
		w.out.WriteString("-")
		token := w.next()
		_, container := token.(json.Delim)
		if container {
			w.out.WriteByte(' ')
		}
		w.value(token, indent+"  ", container)
	}
	w.next()
}

// begin begins a line, unless the line has been begun.
func (w *yamlWriter) begin(indent string, first *bool) {
	if !*first {
		if n := w.out.Len(); n > 0 && w.out.Bytes()[n-1] != '\n' {
			w.out.WriteByte('\n')
		}
		w.out.WriteString(indent)
	}
	*first = false
}

func (w *yamlWriter) empty(text string, first bool) {
	if !first {
		w.out.WriteByte(' ')
	}
	w.out.WriteString(text + "\n")
	w.next()
}

func (w *yamlWriter) scalar(token json.Token, indent string) {
	if w.out.Len() > 0 {
		w.out.WriteByte(' ')
	}
	if s, ok := token.(string); ok && literal(s) {
		w.block(s, indent)
		return
	}
	w.out.WriteString(bareOrQuoted(token) + "\n")
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

// exponent is a number as older readers of YAML know it too: 1e5 is 1.0e+5.
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

func bareOrQuoted(token json.Token) string {
	if n, ok := token.(json.Number); ok {
		return exponent(n.String())
	}
	if s, ok := token.(string); ok && bare(s) {
		return s
	}
	raw, err := rawjson.Marshal(token)
	if err != nil {
		return `""`
	}
	return string(escapeHidden(raw))
}
