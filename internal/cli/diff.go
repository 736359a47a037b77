package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
)

// difference is a definition compared with the approved one.
type difference struct {
	what, name   string
	ops.ToolDiff     // common fields of tools and other definitions
	answer       any // as the daemon sent it
}

// writeDiff shows what would be approved: the changes, or the whole definition when none was approved before. Hidden characters are made visible.
func writeDiff(p *printer, d difference) {
	var f fields
	f.add(d.what, visibleLine(d.name))
	f.add("Status", statusWord(p, d.Status))
	f.add("Waits", waitReason(d.Reason))
	if d.Approved != nil {
		f.add("Approved", p.moment(&d.Approved.At)+" by "+visibleLine(d.Approved.By))
	}
	f.add("Loosens", strings.Join(d.Loosened, ", "))
	f.add("Scanner", verdict(p, d.Verdict, len(d.Findings)))
	f.add("Fingerprint", visibleLine(d.Fingerprint))
	f.write(p)
	writeFindings(p, "", d.Findings)
	writeDifference(p, d)
}

// writeDifference writes the changes, or the whole definition if there is nothing to compare.
func writeDifference(p *printer, d difference) {
	switch {
	case d.Approved == nil && d.Reason == approval.Changed:
		p.text("", "\nThe definition that was approved is not kept any more. This is the whole of the new one:")
		writeDefinition(p, d.Definition)
	case d.Approved == nil:
		p.text("", "\nNone of its definitions was approved before. This is the whole of it:")
		writeDefinition(p, d.Definition)
	case len(d.Changes) == 0:
		p.text("", "\nNothing differs from what is approved.")
	default:
		writeChanges(p, d.Changes)
	}
	if d.Truncated {
		p.text("", "\nThere is more that differs: -o json shows both definitions.")
	}
}

func writeFindings(p *printer, indent string, findings []scan.Finding) {
	for _, f := range findings {
		h := hueWarning
		if f.Severity == scan.SeverityBlock {
			h = hueBad
		}
		fmt.Fprintln(p)
		p.text(indent, fmt.Sprintf("%s %s at %s, bytes %d to %d", p.paint(h, "["+f.Severity.String()+"]"),
			visibleLine(f.Rule), visibleLine(orRoot(f.Path)), f.Start, f.End))
		p.text(indent+"  ", visibleLine(f.Reason)+"\n“"+visibleLine(f.Excerpt)+"”")
	}
}

// orRoot names a finding of the definition as a whole.
func orRoot(path string) string {
	if path == "" {
		return "the definition"
	}
	return path
}

// writeChanges writes the hints first, because they decide the lane of a tool, then the rest in order.
func writeChanges(p *printer, changes []approval.Difference) {
	var hints fields
	hints.indent = "  "
	for _, c := range changes {
		if !c.Hint {
			continue
		}
		value := replacement(p, hintValue(c.Old), hintValue(c.New))
		if c.Loosened {
			value += "  " + p.paint(hueBad, "loosened: it now claims to be more harmless")
		}
		hints.add(visibleLine(strings.TrimPrefix(c.Path, "/annotations/")), value)
	}
	if len(hints.rows) > 0 {
		fmt.Fprintln(p, "\nHints")
		hints.write(p)
	}
	for _, c := range changes {
		if !c.Hint {
			writeChange(p, c)
		}
	}
}

// hintValue returns the value of a hint in its three states.
func hintValue(raw []byte) string {
	if raw == nil {
		return "not said"
	}
	return visibleLine(string(raw))
}

func replacement(p *printer, old, now string) string {
	return mark(p, approval.Removed, old) + mark(p, approval.Added, now)
}

// mark marks a part of a text as removed or added, with and without colour.
func mark(p *printer, kind, text string) string {
	h, before, after := noHue, "", ""
	switch kind {
	case approval.Removed:
		h, before, after = hueBad, "[-", "-]"
	case approval.Added:
		h, before, after = hueGood, "{+", "+}"
	}
	lines := strings.Split(before+text+after, "\n")
	for i, line := range lines {
		lines[i] = p.paint(h, line)
	}
	return strings.Join(lines, "\n")
}

func writeChange(p *printer, c approval.Difference) {
	fmt.Fprintf(p, "\n%s %s\n", visibleLine(orRoot(c.Path)), c.Kind)
	if len(c.Words) > 0 {
		var out strings.Builder
		for i, piece := range c.Words {
			text := piece.Text
			if piece.Kind == approval.Same {
				text = elide(text, i > 0, i < len(c.Words)-1)
			}
			out.WriteString(mark(p, piece.Kind, visible(text)))
		}
		p.text("  ", out.String())
		return
	}
	writeSide(p, "- ", hueBad, c.Old)
	writeSide(p, "+ ", hueGood, c.New)
}

// writeSide writes a removed or added value line by line.
func writeSide(p *printer, sign string, h hue, raw json.RawMessage) {
	if raw == nil {
		return
	}
	for line := range strings.SplitSeq(visibleJSON(raw), "\n") {
		fmt.Fprintln(p, p.paint(h, sign+line))
	}
}

// visibleJSON returns a text as it is and other values as indented JSON, with hidden characters made visible.
func visibleJSON(raw json.RawMessage) string {
	if text, ok := wirejson.String(raw); ok {
		return visible(text)
	}
	return visible(unescapeStrings(indented(raw)))
}

// unescapeStrings decodes unneeded escapes in JSON strings, so that they hide nothing: \u0049 becomes I.
func unescapeStrings(text string) string {
	var out []byte
	rest := []byte(text)
	for {
		start := bytes.IndexByte(rest, '"')
		if start < 0 {
			break
		}
		c := wirejson.Cursor{Text: rest[start:]}
		said, ok := wirejson.String(c.ReadValue())
		if !ok {
			break // not JSON
		}
		out = wirejson.AppendString(append(out, rest[:start]...), said)
		rest = rest[start+c.Offset():]
	}
	return string(append(out, rest...))
}

// aroundChange is how much unchanged text is shown next to a change, in bytes.
const aroundChange = 200

// elide cuts the middle of a long unchanged text. before and after say on which sides there is a change.
func elide(text string, before, after bool) string {
	head, tail := 0, 0
	if before {
		head = aroundChange
	}
	if after {
		tail = aroundChange
	}
	const gap = " … "
	if len(text) <= head+tail+len(gap) {
		return text
	}
	return strings.ToValidUTF8(text[:head], "") + gap + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// writeDefinition writes a whole definition, member by member in order.
func writeDefinition(p *printer, definition json.RawMessage) {
	switch {
	case wirejson.Check(definition, wirejson.Limits{}) != nil:
		fmt.Fprintf(p, "\n%s\n", indentBy("  ", visible(string(definition))))
		return
	case wirejson.Kind(definition) != '{':
		fmt.Fprintf(p, "\n%s\n", indentBy("  ", visibleJSON(definition)))
		return
	}
	_ = wirejson.EachMember(definition, func(name, value []byte) error {
		fmt.Fprintf(p, "\n%s\n%s\n", visibleLine(string(name)), indentBy("  ", visibleJSON(value)))
		return nil
	})
}
