package cli

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
)

// reviewedDefinitions returns the definitions of a server under review, tools first.
func reviewedDefinitions(v ops.ServerReview) []ops.ReviewedOffer {
	var all []ops.ReviewedOffer
	for _, t := range v.Tools {
		all = append(all, ops.ReviewedOffer{Kind: tool.KindTool, Name: t.Tool, ApprovalStatus: t.ApprovalStatus, Definition: t.Definition, ScanResult: t.ScanResult})
	}
	return append(all, v.Offers...)
}

// writeReviewed shows the definitions of a server as they would be approved.
func writeReviewed(p *printer, v ops.ServerReview, full bool) {
	all := reviewedDefinitions(v)
	tools, offers := all[:len(v.Tools)], all[len(v.Tools):]
	writeReviewedKind(p, tools, tool.KindTool)
	if len(tools) > 0 && !full {
		p.note("The whole definitions: `mcpproxy upstream review %s --full`.", quotedWord(v.Name))
	}
	for _, o := range tools {
		writeReviewedOne(p, v, o, full)
	}
	for _, kind := range []tool.DefinitionKind{tool.KindPrompt, tool.KindResource, tool.KindTemplate} {
		writeReviewedKind(p, offers, kind)
	}
	if more := v.TotalOffers - len(v.Offers); more > 0 {
		p.note("%s more that are not shown, and not approved with these.", counted(more, "definition"))
	}
	for _, o := range offers {
		writeReviewedOne(p, v, o, full)
	}
}

// writeReviewedKind writes the table of the definitions of one kind.
func writeReviewedKind(p *printer, all []ops.ReviewedOffer, kind tool.DefinitionKind) {
	name := strings.ToUpper(kind.Label())
	t := table{p: p, header: []string{name, "WAITS", "SCANNER", "DESCRIPTION"}, narrow: slices.Concat(
		shorten("DESCRIPTION", 20), leaveOut("DESCRIPTION"), shorten(name, 24), shorten("SCANNER", 9), leaveOut("WAITS"), shorten(name, 8))}
	for _, o := range all {
		if o.Kind == kind {
			said, _ := wirejson.String(wirejson.Find(o.Definition, "description"))
			t.add(visibleLine(o.Name), visibleLine(string(o.Reason)), verdict(p, o.Verdict, len(o.Findings)), visibleLine(said))
		}
	}
	if len(t.rows) > 0 {
		fmt.Fprintf(p, "\n%s\n", counted(len(t.rows), kind.Label()))
		t.write()
	}
}

// writeReviewedOne writes the findings, changes and definition of one definition.
func writeReviewedOne(p *printer, v ops.ServerReview, o ops.ReviewedOffer, full bool) {
	above := shownAbove(v, o)
	if (len(o.Findings) == 0 && !full || above) && len(o.Changes) == 0 && (above || o.Kind != tool.KindInstructions) {
		return
	}
	fmt.Fprintf(p, "\n%s\n", definition{v.Name, o.Kind, o.Name}.heading())
	if !above {
		writeFindings(p, "  ", o.Findings)
	}
	switch {
	case len(o.Changes) > 0:
		writeChanges(p, o.Changes)
	case full || o.Kind == tool.KindInstructions:
		writeDefinition(p, o.Definition)
	}
}

// shownAbove reports whether a definition is the instructions at the top of the review.
func shownAbove(v ops.ServerReview, o ops.ReviewedOffer) bool {
	said, _ := wirejson.String(o.Definition)
	return o.Kind == tool.KindInstructions && said == v.Instructions
}

// instructionsWait returns why the instructions of a server wait; "" if they do not.
func instructionsWait(v ops.ServerReview) string {
	for _, o := range v.Offers {
		if o.Reason != "" && shownAbove(v, o) {
			return ", " + waitReason(o.Reason)
		}
	}
	return ""
}

// countWaiting counts the definitions that wait.
func countWaiting(all []ops.ReviewedOffer) int {
	n := 0
	for _, o := range all {
		if o.Reason != "" {
			n++
		}
	}
	return n
}

// primitivesNote returns the note in the server list about waiting prompts, resources and instructions.
func primitivesNote(s ops.ServerView) string {
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
	return what + " approval: mcpproxy upstream approve " + quotedWord(s.Name)
}

// addPrimitives adds the counts of a server's prompts, resources, templates and instructions.
func addPrimitives(f *fields, c *ops.OfferCounts) {
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
		case one.title == "Instructions":
			f.add(one.title, "approved")
		case n.Waiting > 0:
			f.add(one.title, fmt.Sprintf("%d, %d of them wait for you", n.Total, n.Waiting))
		default:
			f.add(one.title, fmt.Sprint(n.Total))
		}
	}
}
