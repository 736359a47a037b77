package cli

import (
	"fmt"
	"strconv"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/ops"
)

func formatToolStatus(p *printer, status string) string {
	if status == "" {
		return p.colorize(colorGood, "callable")
	}
	return p.colorize(colorWarning, toOneLine(status))
}

// serverStates contains the displayed words of the states of a server that is enabled and not quarantined: in a table
// and, if it is not good, after the start.
var serverStates = map[string]struct {
	hue           colorMeaning
	word, outcome string
}{
	"needs_login":    {colorWarning, "needs login", "needs a login"},
	"needs_secret":   {colorWarning, "needs secret", "needs a secret"},
	"needs_variable": {colorWarning, "needs variable", "needs an environment variable"},
	"ready":          {colorGood, "ready", ""},
	"stopped":        {colorNone, "connecting", ""}, // it is about to connect
	"failed":         {colorBad, "failed", ""},
}

// formatServerState returns the state of a server in one word. Disabled and quarantined take precedence.
func formatServerState(p *printer, s ops.ServerView) string {
	switch {
	case !s.Enabled:
		return p.colorize(colorFaint, "disabled")
	case s.Quarantined:
		return p.colorize(colorWarning, "quarantined")
	}
	if known, ok := serverStates[s.State]; ok {
		return p.colorize(known.hue, known.word)
	}
	return toOneLine(s.State)
}

// serverOutcomeText returns the state of a server after it was added or restarted, as the end of a sentence.
func serverOutcomeText(p *printer, s ops.ServerView) string {
	known := serverStates[s.State]
	switch {
	case !s.Enabled || s.Quarantined:
	case s.State == "failed":
		return ", but it " + p.colorize(colorBad, "failed to start")
	case known.outcome != "":
		return ": it " + p.colorize(known.hue, known.outcome)
	}
	return ": it is " + formatServerState(p, s)
}

// reviewStageText explains the stage of a server's review.
func reviewStageText(s ops.ReviewStage) string {
	return textForValue(s, map[ops.ReviewStage]string{
		ops.StageLaunch:      "launch: MCPProxy does not start or contact it before you approve the launch",
		ops.StageDefinitions: "definitions: the server runs only for the review",
		ops.StageApproved:    "approved",
	})
}

// waitReasonText explains why a definition waits for approval.
func waitReasonText(why approval.WaitReason) string {
	return textForValue(why, map[approval.WaitReason]string{
		approval.New:     "new: not approved yet",
		approval.Changed: "changed since it was approved",
		approval.Blocked: "blocked: a user blocked this definition",
	})
}

// textForValue returns the text for a value, or the value itself if it has no text.
func textForValue[T ~string](value T, words map[T]string) string {
	if said, ok := words[value]; ok {
		return said
	}
	return escapeInvisibleLine(string(value))
}

// formatScanVerdict describes the scanner's verdict.
func formatScanVerdict(p *printer, v scan.Verdict, findings int) string {
	switch v {
	case scan.Clean:
		return p.colorize(colorGood, "clean")
	case scan.Review, scan.Block:
		h := colorWarning
		if v == scan.Block {
			h = colorBad
		}
		return p.colorize(h, fmt.Sprintf("%s: %s", v, countWithNoun(findings, "finding")))
	}
	return p.colorize(colorWarning, "not fully scanned")
}

func countWithNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func formatFindingCount(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// maxUnhinted limits the number of servers in the notes of `tools list`.
const maxUnhinted = 3

// inferHintsAdvice describes the benefit of enforcing inferred hints. It returns "" if there is none.
func inferHintsAdvice(u *ops.Unhinted) string {
	if u == nil {
		return ""
	}
	say, look := "tools have", "look like reads"
	if u.Tools == 1 {
		say = "tool has"
	}
	if u.Reads == 1 {
		look = "looks like a read"
	}
	return fmt.Sprintf("%d %s no hints; %d %s: `mcpproxy upstream set %s --infer-hints enforce`", u.Tools, say, u.Reads, look, toOneLine(u.Server))
}

func addUnhintedNotes(p *printer, all []ops.Unhinted) {
	for i := range all[:min(len(all), maxUnhinted)] {
		p.addNote("%s", inferHintsAdvice(&all[i]))
	}
}
