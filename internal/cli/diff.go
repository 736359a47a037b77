package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/scan"
	"mcpproxy/internal/strictjson"
)

// writeDiff shows a person what would be approved: what has changed, or the
// whole definition when none was approved before. Nothing in it can hide.
func (r *run) writeDiff(w io.Writer, d gateway.ToolDiff) {
	var f fields
	f.add("Tool", visibleLine(d.Name))
	f.add("Status", r.statusWord(d.Status))
	f.add("Waits", waitsBecause(d.Reason))
	if d.Approved != nil {
		f.add("Approved", r.moment(&d.Approved.At)+" by "+visibleLine(d.Approved.By))
	}
	f.add("Loosens", strings.Join(d.Loosened, ", "))
	f.add("Scanner", r.verdict(d.Verdict, len(d.Findings)))
	f.add("Fingerprint", visibleLine(d.Fingerprint))
	f.write(w)
	r.writeFindings(w, "", d.Findings)
	switch {
	case d.Approved == nil && d.Reason == approval.Changed:
		fmt.Fprintln(w, "\nThe definition that was approved is not kept any more. This is the whole of the new one:")
		r.writeDefinition(w, d.Definition)
	case d.Approved == nil:
		fmt.Fprintln(w, "\nNone of its definitions was approved before. This is the whole of it:")
		r.writeDefinition(w, d.Definition)
	case len(d.Changes) == 0:
		fmt.Fprintln(w, "\nNothing differs from what is approved.")
	default:
		r.writeChanges(w, d.Changes)
	}
	if d.Truncated {
		fmt.Fprintln(w, "\nThere is more that differs: -o json shows both definitions.")
	}
}

// waitsBecause is why a definition waits, in words.
func waitsBecause(why approval.Why) string {
	switch why {
	case "":
		return ""
	case approval.New:
		return "new: nobody has approved it yet"
	case approval.Changed:
		return "changed since it was approved"
	case approval.Blocked:
		return "blocked: a person refused this definition"
	}
	return visibleLine(string(why))
}

// verdict is what the scanner says, in words.
func (r *run) verdict(v scan.Verdict, findings int) string {
	switch v {
	case scan.Clean:
		return r.paint(good, "clean")
	case scan.Review, scan.Block:
		h := care
		if v == scan.Block {
			h = bad
		}
		return r.paint(h, fmt.Sprintf("%s: %s", v, counted(findings, "finding")))
	}
	return r.paint(care, "could not look at all of it")
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func (r *run) writeFindings(w io.Writer, indent string, findings []scan.Finding) {
	for _, f := range findings {
		h := care
		if f.Severity == scan.SeverityBlock {
			h = bad
		}
		fmt.Fprintf(w, "\n%s%s %s at %s, bytes %d to %d\n", indent, r.paint(h, "["+f.Severity.String()+"]"),
			visibleLine(f.Rule), visibleLine(orRoot(f.Path)), f.Start, f.End)
		fmt.Fprintf(w, "%s  %s\n%s  “%s”\n", indent, visibleLine(f.Reason), indent, visibleLine(f.Excerpt))
	}
}

// orRoot names the place of what concerns a definition as a whole.
func orRoot(path string) string {
	if path == "" {
		return "the definition"
	}
	return path
}

// writeChanges writes the hints first, which decide in which lane the tool is
// called, then the rest in order.
func (r *run) writeChanges(w io.Writer, changes []approval.Difference) {
	var hints fields
	hints.indent = "  "
	for _, c := range changes {
		if !c.Hint {
			continue
		}
		value := r.replaced(hintSaid(c.Old), hintSaid(c.New))
		if c.Loosened {
			value += "  " + r.paint(bad, "loosened: it now claims to be more harmless")
		}
		hints.add(visibleLine(strings.TrimPrefix(c.Path, "/annotations/")), value)
	}
	if len(hints.rows) > 0 {
		fmt.Fprintln(w, "\nHints")
		hints.write(w)
	}
	for _, c := range changes {
		if !c.Hint {
			r.writeChange(w, c)
		}
	}
}

// hintSaid is the value of a hint, in its three states.
func hintSaid(raw []byte) string {
	if raw == nil {
		return "not said"
	}
	return visibleLine(string(raw))
}

func (r *run) replaced(old, now string) string {
	return r.mark(approval.Removed, old) + r.mark(approval.Added, now)
}

// mark shows a part of a text as removed or added, also without colour.
func (r *run) mark(kind, text string) string {
	h, before, after := noHue, "", ""
	switch kind {
	case approval.Removed:
		h, before, after = bad, "[-", "-]"
	case approval.Added:
		h, before, after = good, "{+", "+}"
	}
	lines := strings.Split(before+text+after, "\n")
	for i, line := range lines {
		lines[i] = r.paint(h, line)
	}
	return strings.Join(lines, "\n")
}

func (r *run) writeChange(w io.Writer, c approval.Difference) {
	fmt.Fprintf(w, "\n%s %s\n", visibleLine(orRoot(c.Path)), c.Kind)
	if len(c.Words) > 0 {
		var out strings.Builder
		for i, p := range c.Words {
			text := p.Text
			if p.Kind == approval.Same {
				text = shortened(text, i > 0, i < len(c.Words)-1)
			}
			out.WriteString(r.mark(p.Kind, visible(text)))
		}
		fmt.Fprintln(w, indentBy("  ", out.String()))
		return
	}
	r.writeSide(w, "- ", bad, c.Old)
	r.writeSide(w, "+ ", good, c.New)
}

// writeSide writes a value that was removed or added, marked line by line.
func (r *run) writeSide(w io.Writer, sign string, h hue, raw json.RawMessage) {
	if raw == nil {
		return
	}
	for line := range strings.SplitSeq(seenJSON(raw), "\n") {
		fmt.Fprintln(w, r.paint(h, sign+line))
	}
}

// seenJSON is a text as it is and anything else as indented JSON, visible.
func seenJSON(raw json.RawMessage) string {
	if text, ok := strictjson.String(raw); ok {
		return visible(text)
	}
	return visible(string(spelledOut(indented(raw))))
}

// spelledOut is JSON with its texts spelled as they are read, so that nothing
// is hidden from a person by writing it in escapes: \u0049 becomes I.
func spelledOut(text string) []byte {
	var out bytes.Buffer
	for len(text) > 0 {
		start := strings.IndexByte(text, '"')
		if start < 0 {
			break
		}
		end := start + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			break // no JSON
		}
		out.WriteString(text[:start])
		literal := text[start : end+1]
		if said, ok := strictjson.String([]byte(literal)); ok {
			literal = respelled(said, literal)
		}
		out.WriteString(literal)
		text = text[end+1:]
	}
	out.WriteString(text)
	return out.Bytes()
}

// respelled is a text as a JSON string without needless escapes.
func respelled(said, literal string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(said) != nil {
		return literal
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// aroundChange is how much of a text that did not change is shown beside a
// change, in bytes.
const aroundChange = 200

// shortened leaves out the middle of a long text that did not change; before
// and after say on which sides of it something did.
func shortened(text string, before, after bool) string {
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

// writeDefinition writes a definition whole, member by member in its order.
func (r *run) writeDefinition(w io.Writer, definition json.RawMessage) {
	if strictjson.Check(definition, strictjson.Limits{}) != nil || strictjson.Kind(definition) != '{' {
		fmt.Fprintf(w, "\n%s\n", indentBy("  ", visible(string(definition))))
		return
	}
	_ = strictjson.Members(definition, func(name, value []byte) error {
		fmt.Fprintf(w, "\n%s\n%s\n", visibleLine(string(name)), indentBy("  ", seenJSON(value)))
		return nil
	})
}
