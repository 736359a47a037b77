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
		return p.paint(good, "callable")
	}
	return p.paint(care, oneLine(status))
}

// state returns the state of a server in one word. What disables the server comes first.
func state(p *printer, s ops.ServerView) string {
	switch {
	case !s.Enabled:
		return p.paint(faint, "disabled")
	case s.Quarantined:
		return p.paint(care, "quarantined")
	case s.State == "needs_login":
		return p.paint(care, "needs login")
	case s.State == "needs_secret":
		return p.paint(care, "needs secret")
	case s.State == "needs_variable":
		return p.paint(care, "needs variable")
	case s.State == "ready":
		return p.paint(good, "ready")
	case s.State == "idle":
		return "idle"
	case s.State == "stopped":
		return "connecting" // it is enabled, so it is about to connect
	case s.State == "failed":
		return p.paint(bad, "failed")
	}
	return oneLine(s.State)
}

// stateSentence returns the state in a sentence.
func nowIs(p *printer, s ops.ServerView) string {
	switch {
	case !s.Enabled || s.Quarantined:
	case s.State == "needs_login":
		return "it " + p.paint(care, "needs a login")
	case s.State == "needs_secret":
		return "it " + p.paint(care, "needs a secret")
	case s.State == "needs_variable":
		return "it " + p.paint(care, "needs an environment variable")
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
func waitsBecause(why approval.Why) string {
	return inWords(why, map[approval.Why]string{
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
		return p.paint(good, "clean")
	case scan.Review, scan.Block:
		h := care
		if v == scan.Block {
			h = bad
		}
		return p.paint(h, fmt.Sprintf("%s: %s", v, counted(findings, "finding")))
	}
	return p.paint(care, "could not look at all of it")
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

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
