package cli

import (
	"fmt"
	"strings"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/tool"
)

// writeReviewedOffers shows what a server offers beside tools as it would be
// approved.
func writeReviewedOffers(p *printer, v gateway.ServerReview, full bool) {
	for _, kind := range []tool.Kind{tool.KindPrompt, tool.KindResource, tool.KindTemplate} {
		t := table{p: p, header: []string{strings.ToUpper(kind.Word()), "WAITS", "SCANNER", "DESCRIPTION"}}
		n := 0
		for _, o := range v.Offers {
			if o.Kind != kind {
				continue
			}
			n++
			said, _ := rawjson.String(rawjson.Find(o.Definition, "description"))
			t.add(visibleLine(o.Name), visibleLine(string(o.Reason)), verdict(p, o.Verdict, len(o.Findings)), cut(visibleLine(said), maxSummary))
		}
		if n > 0 {
			fmt.Fprintf(p, "\n%s\n", counted(n, kind.Word()))
			t.write()
		}
	}
	if more := v.TotalOffers - len(v.Offers); more > 0 {
		p.note("%s more that are not shown, and not approved with these.", counted(more, "definition"))
	}
	for _, o := range v.Offers {
		said, _ := rawjson.String(o.Definition)
		above := o.Kind == tool.KindInstructions && said == v.Instructions // it is shown already
		if (len(o.Findings) == 0 && !full || above) && len(o.Changes) == 0 && (above || o.Kind != tool.KindInstructions) {
			continue
		}
		fmt.Fprintf(p, "\n%s\n", sentence(offerRef{v.Name, o.Kind, o.Name}.title()))
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
}

// instructionsWait returns why the instructions of a server wait, if they do.
func instructionsWait(v gateway.ServerReview) string {
	for _, o := range v.Offers {
		if said, _ := rawjson.String(o.Definition); o.Kind == tool.KindInstructions && o.Reason != "" && said == v.Instructions {
			return ", " + waitsBecause(o.Reason)
		}
	}
	return ""
}

// offersWaiting is how many offers of a server wait.
func offersWaiting(v gateway.ServerReview) int {
	n := 0
	for _, o := range v.Offers {
		if o.Reason != "" {
			n++
		}
	}
	return n
}

// offersNote says in the list of servers what of one waits beside tools.
func offersNote(s gateway.ServerView) string {
	if s.Offers == nil {
		return ""
	}
	n := 0
	for _, c := range []*gateway.OfferCount{s.Offers.Instructions, s.Offers.Prompts, s.Offers.Resources, s.Offers.Templates} {
		if c != nil {
			n += c.Waiting
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d beside tools wait: mcpproxy upstream approve %s", n, s.Name)
}

// addOffers adds what a server offers beside tools.
func addOffers(f *fields, c *gateway.OfferCounts) {
	if c == nil {
		return
	}
	for _, one := range []struct {
		title string
		count *gateway.OfferCount
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
