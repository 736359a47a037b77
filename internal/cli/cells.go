package cli

import (
	"fmt"
	"strconv"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/ops"
)

func statusWord(p *printer, status string) string {
	if status == "" {
		return p.paint(hueGood, "callable")
	}
	return p.paint(hueWarning, oneLine(status))
}

// state returns the state of a server in one word. What disables the server comes first.
func state(p *printer, s ops.ServerView) string {
	switch {
	case !s.Enabled:
		return p.paint(hueFaint, "disabled")
	case s.Quarantined:
		return p.paint(hueWarning, "quarantined")
	case s.State == "needs_login":
		return p.paint(hueWarning, "needs login")
	case s.State == "needs_secret":
		return p.paint(hueWarning, "needs secret")
	case s.State == "needs_variable":
		return p.paint(hueWarning, "needs variable")
	case s.State == "ready":
		return p.paint(hueGood, "ready")
	case s.State == "idle":
		return "idle"
	case s.State == "stopped":
		return "connecting" // it is enabled, so it is about to connect
	case s.State == "failed":
		return p.paint(hueBad, "failed")
	}
	return oneLine(s.State)
}

// stateSentence returns the state in a sentence.
func stateSentence(p *printer, s ops.ServerView) string {
	switch {
	case !s.Enabled || s.Quarantined:
	case s.State == "needs_login":
		return "it " + p.paint(hueWarning, "needs a login")
	case s.State == "needs_secret":
		return "it " + p.paint(hueWarning, "needs a secret")
	case s.State == "needs_variable":
		return "it " + p.paint(hueWarning, "needs an environment variable")
	}
	return "it is now " + state(p, s)
}

// reviewStage explains the stage of a server's review.
func reviewStage(s ops.ReviewStage) string {
	return inWords(s, map[ops.ReviewStage]string{
		ops.StageLaunch:      "launch: it is neither started nor contacted before you approve how",
		ops.StageDefinitions: "definitions: it runs for the review only",
		ops.StageApproved:    "approved",
	})
}

// waitReason explains why a definition waits.
func waitReason(why approval.WaitReason) string {
	return inWords(why, map[approval.WaitReason]string{
		approval.New:     "new: nobody has approved it yet",
		approval.Changed: "changed since it was approved",
		approval.Blocked: "blocked: a person refused this definition",
	})
}

// inWords returns the words for a value, or the value itself if there are none.
func inWords[T ~string](value T, words map[T]string) string {
	if said, ok := words[value]; ok {
		return said
	}
	return visibleLine(string(value))
}

// verdict describes the scanner's verdict.
func verdict(p *printer, v scan.Verdict, findings int) string {
	switch v {
	case scan.Clean:
		return p.paint(hueGood, "clean")
	case scan.Review, scan.Block:
		h := hueWarning
		if v == scan.Block {
			h = hueBad
		}
		return p.paint(h, fmt.Sprintf("%s: %s", v, counted(findings, "finding")))
	}
	return p.paint(hueWarning, "could not look at all of it")
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func findingCount(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func dashIfEmpty(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
