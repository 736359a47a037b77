package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// kindFlag is the --kind flag. It applies a command for tools to prompts, resources, resource templates or
// instructions.
type kindFlag string

// parseKind parses the value of the flag.
func (k kindFlag) parseKind() (tool.DefinitionKind, error) {
	for _, kind := range append(tool.PrimitiveKinds(), tool.KindTool) {
		if kind.Label() == string(k) {
			return kind, nil
		}
	}
	return "", newUsageError("Invalid value '"+string(k)+"' for --kind: must be one of "+strings.Join(definitionKindNames(), ", ")+".", "")
}

// parseDefinitionRef parses an argument that names a definition of the flag's kind.
func (k kindFlag) parseDefinitionRef(arg string) (definitionRef, error) {
	kind, err := k.parseKind()
	if err != nil {
		return definitionRef{}, err
	}
	return parseDefinitionRef(kind, arg)
}

// definitionRef refers to the definition of a tool, prompt, resource, template or instructions. Instructions have no
// name.
type definitionRef ops.PrimitiveRef

// parseDefinitionRef parses an argument of the form server:name, or server for instructions.
func parseDefinitionRef(kind tool.DefinitionKind, arg string) (definitionRef, error) {
	if kind == tool.KindTool {
		id, err := parseToolID(arg)
		return definitionRef{id.Server, kind, id.Tool}, err
	}
	ref, err := ops.NamedDefinition{Name: arg, Kind: kind}.ParseRef()
	if p := problem.From(err); p != nil {
		return definitionRef{}, newUsageError(toPrintable(p.Message), p.Hint)
	}
	return definitionRef(ref), nil
}

// qualifiedName returns server:name, as shown in lists.
func (d definitionRef) qualifiedName() string {
	if d.Kind == tool.KindInstructions {
		return d.Server
	}
	return d.Server + ":" + d.Name
}

// shellArguments returns the command-line arguments that refer to the definition, quoted for a shell.
func (d definitionRef) shellArguments() string {
	if d.Kind == tool.KindTool {
		return shellQuoteWord(d.qualifiedName())
	}
	return "--kind " + d.Kind.Label() + " " + shellQuoteWord(d.qualifiedName())
}

// nameInSentence returns the definition's name for use inside a sentence, in lower case.
func (d definitionRef) nameInSentence() string {
	switch d.Kind {
	case tool.KindTool:
		return escapeInvisibleLine(d.qualifiedName())
	case tool.KindInstructions:
		return "the instructions of " + escapeInvisibleLine(d.Server)
	}
	return "the " + d.Kind.Label() + " " + escapeInvisibleLine(d.qualifiedName())
}

// capitalizedName returns the name for the start of a sentence.
func (d definitionRef) capitalizedName() string {
	if d.Kind == tool.KindTool {
		return d.nameInSentence()
	}
	return capitalizeFirst(d.nameInSentence())
}

// capitalizedNameWithVerb returns the capitalized name with "is" or "are".
func (d definitionRef) capitalizedNameWithVerb() string {
	if d.Kind == tool.KindInstructions {
		return d.capitalizedName() + " are"
	}
	return d.capitalizedName() + " is"
}

// approveQuestion returns the question whether to approve the definition.
func (d definitionRef) approveQuestion() string {
	if d.Kind == tool.KindTool {
		return "Approve this definition of " + d.nameInSentence() + "?"
	}
	return "Approve " + d.nameInSentence() + "?"
}

func (d definitionRef) toToolRef() ops.ToolRef { return ops.ToolRef{Server: d.Server, Tool: d.Name} }

func (d definitionRef) fetchDiff(ctx context.Context, c *api.Client) (definitionDiff, error) {
	if d.Kind == tool.KindTool {
		t, err := api.DiffTool.Call(ctx, c, d.toToolRef())
		return definitionDiff{"Tool", t.Name, t, t}, err
	}
	o, err := api.Primitives[d.Kind].Diff.Call(ctx, c, ops.PrimitiveRef(d))
	return definitionDiff{capitalizeFirst(o.Kind.Label()), definitionRef{o.Server, o.Kind, o.Name}.qualifiedName(), ops.ToolDiff{
		Status: o.Status, Reason: o.Reason, Fingerprint: o.Fingerprint, Comparison: o.Comparison, ScanResult: o.ScanResult,
	}, o}, err
}

// approve approves the definition. It returns the daemon's answer and, for a tool, the new status.
func (d definitionRef) approve(ctx context.Context, c *api.Client, s ops.SeenFingerprint) (answer any, status string, err error) {
	if d.Kind == tool.KindTool {
		v, err := api.ApproveTool.Call(ctx, c, ops.ToolApproval{ToolDecision: ops.ToolDecision{ToolRef: d.toToolRef(), SeenFingerprint: s}})
		return v, v.Status, err
	}
	answer, err = api.Primitives[d.Kind].Approve.Call(ctx, c, ops.PrimitiveDecision{PrimitiveRef: ops.PrimitiveRef(d), SeenFingerprint: s})
	return answer, "", err
}

// definitionDecision is a decision about one definition, other than an approval.
type definitionDecision struct {
	done      string // past participle for a sentence, such as "blocked"
	ofTool    *api.Op[ops.ToolDecision, ops.ToolView]
	ofOther   func(api.PrimitiveOps) *api.Op[ops.PrimitiveDecision, ops.OfferDiff]
	printDone func(p *printer, of definitionRef)
	complete  func(kind *kindFlag) completionFunc // the definitions to decide about
}

var blockDefinition = definitionDecision{"blocked", api.BlockTool, func(o api.PrimitiveOps) *api.Op[ops.PrimitiveDecision, ops.OfferDiff] { return o.Block }, func(p *printer, of definitionRef) {
	p.writeLine("Blocked %s. To undo this, run `mcpproxy tools unblock %s`.", of.nameInSentence(), of.shellArguments())
}, definitionNames}

var unblockDefinition = definitionDecision{"unblocked", api.UnblockTool, func(o api.PrimitiveOps) *api.Op[ops.PrimitiveDecision, ops.OfferDiff] { return o.Unblock }, func(p *printer, of definitionRef) {
	p.writeLine("Unblocked %s. To approve it, run `mcpproxy tools approve %s`.", of.nameInSentence(), of.shellArguments())
}, func(kind *kindFlag) completionFunc {
	return waitingNames(kind, func(w waitingDefinition) bool { return w.Reason == approval.Blocked })
}}

// send sends the decision about the definition with this fingerprint, and returns the daemon's answer.
func (decision definitionDecision) send(ctx context.Context, c *api.Client, of definitionRef, s ops.SeenFingerprint) (answer any, err error) {
	if of.Kind == tool.KindTool {
		return decision.ofTool.Call(ctx, c, ops.ToolDecision{ToolRef: of.toToolRef(), SeenFingerprint: s})
	}
	return decision.ofOther(api.Primitives[of.Kind]).Call(ctx, c, ops.PrimitiveDecision{PrimitiveRef: ops.PrimitiveRef(of), SeenFingerprint: s})
}

// run sends the decision about the definition with the given fingerprint, or about the current definition if there is
// none.
func (decision definitionDecision) run(r *invocation, ctx context.Context, c *api.Client, of definitionRef, seen ops.SeenFingerprint) error {
	if seen.Fingerprint == "" {
		d, err := of.fetchDiff(ctx, c)
		if err != nil {
			return err
		}
		seen.Fingerprint = d.Fingerprint
	}
	answer, err := decision.send(ctx, c, of, seen)
	if err != nil {
		return withConflictHint(err, decision.done, "mcpproxy tools diff "+of.shellArguments())
	}
	return r.printOutput(answer, func(p *printer) { decision.printDone(p, of) })
}

// confirmAndApproveDefinition shows a definition, asks, and approves exactly that definition.
func confirmAndApproveDefinition(r *invocation, ctx context.Context, c *api.Client, of definitionRef, given confirmationFlags) error {
	seen := ops.SeenFingerprint{Fingerprint: given.fingerprint}
	if seen.Fingerprint == "" {
		d, err := of.fetchDiff(ctx, c)
		if err != nil {
			return err
		}
		if d.Reason == "" {
			return r.printOutput(d.response, func(p *printer) { p.writeLine("%s approved already.", of.capitalizedNameWithVerb()) })
		}
		if r.output == formatTable {
			writeDefinitionDiff(r.newPrinter(r.Stdout), d)
			fmt.Fprintln(r.Stdout)
		}
		if err := r.requireConfirmation(ctx, given, of.approveQuestion(), approveWithoutTerminalHint("tools diff", "tools approve", of.shellArguments(), d.Fingerprint)); err != nil {
			return err
		}
		seen.Fingerprint = d.Fingerprint
	}
	answer, status, err := of.approve(ctx, c, seen)
	if err != nil {
		return withConflictHint(err, "approved", "mcpproxy tools diff "+of.shellArguments())
	}
	return r.printOutput(answer, func(p *printer) {
		p.writeLine("Approved %s.", of.nameInSentence())
		noteToolStillLocked(p, status)
	})
}

// approveWithoutTerminalHint explains how to approve without a terminal.
func approveWithoutTerminalHint(look, approve, name, fingerprint string) string {
	return fmt.Sprintf("Review it with `mcpproxy %s %s`, then approve this definition with `mcpproxy %s %s --fingerprint %s`. To approve the current definition, pass --yes.",
		look, name, approve, name, escapeInvisibleLine(fingerprint))
}

// withConflictHint adds a hint to the error for a definition that has changed since it was shown.
func withConflictHint(err error, done, command string) error {
	if p := problem.From(err); p.Code == problem.Conflict {
		return p.WithHint("Nothing was " + done + ". See the current definition with `" + command + "`.")
	}
	return err
}

// noteToolStillLocked notes why an approved tool still cannot be called.
func noteToolStillLocked(p *printer, status string) {
	for _, s := range policy.Statuses() {
		if status == s.String() {
			p.addNote("It still cannot be called. Its status is %s. %s", status, s.Remedy())
		}
	}
}

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
