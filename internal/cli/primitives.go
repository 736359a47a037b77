package cli

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
)

// toReviewedDefinitions converts the review of a server to a list of its definitions, tools first.
func toReviewedDefinitions(v ops.ServerReview) []ops.ReviewedOffer {
	var all []ops.ReviewedOffer
	for _, t := range v.Tools {
		all = append(all, ops.ReviewedOffer{Kind: tool.KindTool, Name: t.Tool, ApprovalStatus: t.ApprovalStatus, Definition: t.Definition, Changes: t.Changes, ScanResult: t.ScanResult})
	}
	return append(all, v.Offers...)
}

// writeReviewedDefinitions shows the definitions of a server that an approval would cover.
func writeReviewedDefinitions(p *printer, v ops.ServerReview, full bool) {
	all := toReviewedDefinitions(v)
	tools, offers := all[:len(v.Tools)], all[len(v.Tools):]
	writeReviewedKindTable(p, tools, tool.KindTool)
	if len(tools) > 0 && !full {
		p.addNote("To see the full definitions, run `mcpproxy upstream review %s --full`.", shellQuoteWord(v.Name))
	}
	for _, o := range tools {
		writeReviewedDefinition(p, v, o, full)
	}
	for _, kind := range []tool.DefinitionKind{tool.KindPrompt, tool.KindResource, tool.KindTemplate} {
		writeReviewedKindTable(p, offers, kind)
	}
	if more := v.TotalOffers - len(v.Offers); more > 0 {
		p.addNote("Not shown here, and not approved by this command: %s.", countWithNoun(more, "more definition"))
	}
	for _, o := range offers {
		writeReviewedDefinition(p, v, o, full)
	}
}

// writeReviewedKindTable writes the table of the definitions of one kind.
func writeReviewedKindTable(p *printer, all []ops.ReviewedOffer, kind tool.DefinitionKind) {
	name := strings.ToUpper(kind.Label())
	t := table{p: p, header: []string{name, "REASON", "SCANNER", "DESCRIPTION"}, narrowingSteps: slices.Concat(
		columnTruncationStep("DESCRIPTION", 20), columnHidingSteps("DESCRIPTION"), columnTruncationStep(name, 24), columnTruncationStep("SCANNER", 9), columnHidingSteps("REASON"), columnTruncationStep(name, 8))}
	for _, o := range all {
		if o.Kind == kind {
			said, _ := wirejson.String(wirejson.Find(o.Definition, "description"))
			t.addRow(escapeInvisibleLine(o.Name), escapeInvisibleLine(string(o.Reason)), formatScanVerdict(p, o.Verdict, len(o.Findings)), escapeInvisibleLine(said))
		}
	}
	if len(t.rows) > 0 {
		fmt.Fprintf(p, "\n%s\n", countWithNoun(len(t.rows), kind.Label()))
		t.write()
	}
}

// writeReviewedDefinition writes the findings, changes and definition of one definition.
func writeReviewedDefinition(p *printer, v ops.ServerReview, o ops.ReviewedOffer, full bool) {
	above := isInstructionsShownAtTop(v, o)
	if (len(o.Findings) == 0 && !full || above) && len(o.Changes) == 0 && (above || o.Kind != tool.KindInstructions) {
		return
	}
	fmt.Fprintf(p, "\n%s\n", definitionRef{v.Name, o.Kind, o.Name}.capitalizedName())
	if !above {
		writeScanFindings(p, "  ", o.Findings)
	}
	switch {
	case len(o.Changes) > 0:
		writeDefinitionChanges(p, o.Changes)
	case full || o.Kind == tool.KindInstructions:
		writeWholeDefinition(p, o.Definition)
	}
}

// isInstructionsShownAtTop reports whether a definition is the server's instructions, which are shown at the top of the
// review.
func isInstructionsShownAtTop(v ops.ServerReview, o ops.ReviewedOffer) bool {
	said, _ := wirejson.String(o.Definition)
	return o.Kind == tool.KindInstructions && said == v.Instructions
}

// instructionsWaitText explains why the instructions of a server wait for approval. It returns "" if they do not wait.
func instructionsWaitText(v ops.ServerReview) string {
	for _, o := range v.Offers {
		if o.Reason != "" && isInstructionsShownAtTop(v, o) {
			return ", " + waitReasonText(o.Reason)
		}
	}
	return ""
}

// isApprovedWithServer reports whether an approval of the server approves a definition that waits. A blocked one stays blocked.
func isApprovedWithServer(o ops.ReviewedOffer) bool {
	return o.Reason != "" && o.Reason != approval.Blocked
}

// countWaitingDefinitions counts the definitions that an approval of the server approves.
func countWaitingDefinitions(all []ops.ReviewedOffer) int {
	n := 0
	for _, o := range all {
		if isApprovedWithServer(o) {
			n++
		}
	}
	return n
}

// waitingPrimitivesText returns the note in the server list about waiting prompts, resources and instructions.
func waitingPrimitivesText(s ops.ServerView) string {
	if s.Offers == nil {
		return ""
	}
	n := 0
	for _, c := range []*ops.OfferCount{s.Offers.Instructions, s.Offers.Prompts, s.Offers.Resources, s.Offers.Templates} {
		if c != nil {
			n += c.Waiting
		}
	}
	if n == 0 {
		return ""
	}
	what := "1 prompt, resource or instruction awaits"
	if n > 1 {
		what = fmt.Sprintf("%d prompts, resources or instructions await", n)
	}
	if s.Offers.Instructions != nil && n == s.Offers.Instructions.Waiting { // as in the list of pending approvals
		return "its instructions await approval: mcpproxy tools approve " + definitionRef{Server: s.Name, Kind: tool.KindInstructions}.shellArguments()
	}
	return what + " approval: mcpproxy upstream approve " + shellQuoteWord(s.Name)
}

// addPrimitiveCounts adds the counts of a server's prompts, resources, templates and instructions.
func addPrimitiveCounts(f *fieldList, c *ops.OfferCounts) {
	if c == nil {
		return
	}
	for _, one := range []struct {
		title string
		count *ops.OfferCount
	}{{"Instructions", c.Instructions}, {"Prompts", c.Prompts}, {"Resources", c.Resources}, {"Templates", c.Templates}} {
		switch n := one.count; {
		case n == nil:
		case one.title == "Instructions" && n.Waiting > 0:
			f.add(one.title, "wait for you")
		case one.title == "Instructions" && n.Blocked > 0:
			f.add(one.title, "blocked by a user")
		case one.title == "Instructions":
			f.add(one.title, "approved")
		default:
			text := fmt.Sprint(n.Total)
			if n.Waiting > 0 {
				text += fmt.Sprintf(", %d of them wait for you", n.Waiting)
			}
			if n.Blocked > 0 {
				text += fmt.Sprintf(", %d of them blocked by a user", n.Blocked)
			}
			f.add(one.title, text)
		}
	}
}
