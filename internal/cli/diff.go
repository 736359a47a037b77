package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
)

// definitionDiff is a comparison of a definition with the approved one.
type definitionDiff struct {
	what, name   string
	ops.ToolDiff     // common fields of tools and other definitions
	response     any // as the daemon sent it
}

// writeDefinitionDiff shows the changes to approve, or the whole definition if no version was approved before. It makes
// hidden characters visible.
func writeDefinitionDiff(p *printer, d definitionDiff) {
	var f fieldList
	f.add(d.what, escapeInvisibleLine(d.name))
	f.add("Status", formatToolStatus(p, d.Status))
	f.add("Reason", waitReasonText(d.Reason))
	if d.Approved != nil {
		f.add("Approved", p.formatTime(&d.Approved.At)+" by "+escapeInvisibleLine(d.Approved.By))
	}
	f.add("Relaxed", strings.Join(d.Loosened, ", "))
	f.add("Scanner", formatScanVerdict(p, d.Verdict, len(d.Findings)))
	f.add("Fingerprint", escapeInvisibleLine(d.Fingerprint))
	f.write(p)
	writeScanFindings(p, "", d.Findings)
	writeChangesOrDefinition(p, d)
}

// writeChangesOrDefinition writes the changes, or the whole definition if there is nothing to compare.
func writeChangesOrDefinition(p *printer, d definitionDiff) {
	switch {
	case d.Approved == nil && d.Reason == approval.Changed:
		p.writeWrapped("", "\nThe approved definition is no longer stored. The new definition:")
		writeWholeDefinition(p, d.Definition)
	case d.Approved == nil:
		p.writeWrapped("", "\nNo earlier definition was approved. The definition:")
		writeWholeDefinition(p, d.Definition)
	case len(d.Changes) == 0 && d.Reason != "": // the definition was blocked after its approval
		p.writeWrapped("", "\nThe definition is the same as the one approved before.")
	case len(d.Changes) == 0:
		p.writeWrapped("", "\nThe definition is the same as the approved one.")
	default:
		writeDefinitionChanges(p, d.Changes)
	}
	if d.Truncated {
		p.writeWrapped("", "\nThere are more differences. To see both definitions, pass -o json.")
	}
}

func writeScanFindings(p *printer, indent string, findings []scan.Finding) {
	for _, f := range findings {
		h := colorWarning
		if f.Severity == scan.SeverityBlock {
			h = colorBad
		}
		fmt.Fprintln(p)
		p.writeWrapped(indent, fmt.Sprintf("%s %s at %s, bytes %d to %d", p.colorize(h, "["+f.Severity.String()+"]"),
			escapeInvisibleLine(f.Rule), escapeInvisibleLine(cmp.Or(f.Path, "the definition")), f.Start, f.End))
		p.writeWrapped(indent+"  ", escapeInvisibleLine(f.Reason)+"\n“"+escapeInvisibleLine(f.Excerpt)+"”")
	}
}

// writeDefinitionChanges writes the changed hints first, because they determine the lane of a tool. Then it writes the
// other changes in order.
func writeDefinitionChanges(p *printer, changes []approval.Difference) {
	var hints fieldList
	hints.indent = "  "
	for _, c := range changes {
		if !c.Hint {
			continue
		}
		value := formatReplacement(p, formatHintValue(c.Old), formatHintValue(c.New))
		if c.Loosened {
			value += "  " + p.colorize(colorBad, "relaxed: the tool now claims to do less harm")
		}
		hints.add(escapeInvisibleLine(strings.TrimPrefix(c.Path, "/annotations/")), value)
	}
	if len(hints.rows) > 0 {
		fmt.Fprintln(p, "\nHints")
		hints.write(p)
	}
	for _, c := range changes {
		if !c.Hint {
			writeDefinitionChange(p, c)
		}
	}
}

// formatHintValue formats the value of a hint, or a text for a missing hint.
func formatHintValue(raw []byte) string {
	if raw == nil {
		return "not declared"
	}
	return escapeInvisibleLine(string(raw))
}

func formatReplacement(p *printer, old, now string) string {
	return markRemovedOrAdded(p, approval.Removed, old) + markRemovedOrAdded(p, approval.Added, now)
}

// markRemovedOrAdded marks a part of a text as removed or added, with symbols and color.
func markRemovedOrAdded(p *printer, kind, text string) string {
	h, before, after := colorNone, "", ""
	switch kind {
	case approval.Removed:
		h, before, after = colorBad, "[-", "-]"
	case approval.Added:
		h, before, after = colorGood, "{+", "+}"
	}
	lines := strings.Split(before+text+after, "\n")
	for i, line := range lines {
		lines[i] = p.colorize(h, line)
	}
	return strings.Join(lines, "\n")
}

func writeDefinitionChange(p *printer, c approval.Difference) {
	fmt.Fprintf(p, "\n%s %s\n", escapeInvisibleLine(cmp.Or(c.Path, "the definition")), c.Kind)
	if len(c.Words) > 0 {
		var out strings.Builder
		for i, piece := range c.Words {
			text := piece.Text
			if piece.Kind == approval.Same {
				text = elideMiddle(text, i > 0, i < len(c.Words)-1)
			}
			out.WriteString(markRemovedOrAdded(p, piece.Kind, escapeInvisible(text)))
		}
		p.writeWrapped("  ", out.String())
		return
	}
	writeRemovedOrAddedValue(p, "- ", colorBad, c.Old)
	writeRemovedOrAddedValue(p, "+ ", colorGood, c.New)
}

// writeRemovedOrAddedValue writes a removed or added value line by line.
func writeRemovedOrAddedValue(p *printer, sign string, h colorMeaning, raw json.RawMessage) {
	if raw == nil {
		return
	}
	for line := range strings.SplitSeq(formatVisibleJSON(raw), "\n") {
		fmt.Fprintln(p, p.colorize(h, sign+line))
	}
}

// formatVisibleJSON returns a string without quotes and any other value as indented JSON. It makes hidden characters
// visible.
func formatVisibleJSON(raw json.RawMessage) string {
	if text, ok := wirejson.String(raw); ok {
		return escapeInvisible(text)
	}
	return escapeInvisible(unescapeJSONStrings(indentJSON(raw)))
}

// unescapeJSONStrings decodes unneeded escapes in JSON strings, such as \u0049 for I, so that they hide no text.
func unescapeJSONStrings(text string) string {
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

// unchangedContextBytes is the number of bytes of unchanged text shown next to a change.
const unchangedContextBytes = 200

// elideMiddle cuts the middle of a long unchanged text. before and after report whether a change precedes or follows
// it.
func elideMiddle(text string, before, after bool) string {
	head, tail := 0, 0
	if before {
		head = unchangedContextBytes
	}
	if after {
		tail = unchangedContextBytes
	}
	const gap = " … "
	if len(text) <= head+tail+len(gap) {
		return text
	}
	return strings.ToValidUTF8(text[:head], "") + gap + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// writeWholeDefinition writes all members of a definition in order.
func writeWholeDefinition(p *printer, definition json.RawMessage) {
	switch {
	case wirejson.Check(definition, wirejson.Limits{}) != nil:
		fmt.Fprintf(p, "\n%s\n", indentLines("  ", escapeInvisible(string(definition))))
		return
	case wirejson.Kind(definition) != '{':
		fmt.Fprintf(p, "\n%s\n", indentLines("  ", formatVisibleJSON(definition)))
		return
	}
	_ = wirejson.EachMember(definition, func(name, value []byte) error {
		fmt.Fprintf(p, "\n%s\n%s\n", escapeInvisibleLine(string(name)), indentLines("  ", formatVisibleJSON(value)))
		return nil
	})
}
