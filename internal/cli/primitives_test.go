package cli

import (
	"bytes"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/ops"
)

// Blocked prompts and instructions wait for no one.
func TestBlockedPrimitivesDoNotAwaitApproval(t *testing.T) {
	t.Parallel()
	all := &ops.OfferCounts{Instructions: &ops.OfferCount{Total: 1, Blocked: 1}, Prompts: &ops.OfferCount{Total: 4, Waiting: 1, Blocked: 2}, Resources: &ops.OfferCount{Total: 3, Blocked: 3}}
	if note := waitingPrimitivesText(ops.ServerView{Name: "s", Offers: all}); note != "1 prompt, resource or instruction awaits approval: mcpproxy upstream approve s" {
		t.Error(note)
	}
	var out bytes.Buffer
	p := newInvocation(Deps{Stdout: &out}).newPrinter(&out)
	var f fieldList
	addPrimitiveCounts(&f, all)
	f.write(p)
	want := "Instructions  blocked by a user\nPrompts       4, 1 of them wait for you, 2 of them blocked by a user\nResources     3, 3 of them blocked by a user\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

// The question before the approval of a server counts what the approval changes.
func TestServerApprovalQuestion(t *testing.T) {
	t.Parallel()
	clean := ops.ScanResult{Verdict: scan.Clean}
	suspect := ops.ScanResult{Verdict: scan.Review, Findings: exampleFindings()}
	v := ops.ServerReview{Name: "everything", Stage: ops.StageApproved}
	for range 13 {
		v.Tools = append(v.Tools, ops.ReviewedTool{ScanResult: clean})
		v.Offers = append(v.Offers, ops.ReviewedOffer{Kind: tool.KindPrompt, ScanResult: clean})
	}
	waits := ops.ApprovalStatus{Reason: approval.New}
	instructions := ops.ReviewedOffer{Kind: tool.KindInstructions, ApprovalStatus: waits, ScanResult: suspect}
	v.Offers = append(v.Offers, instructions)
	check := func(want string) {
		t.Helper()
		if got := serverApprovalQuestion(v); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	check("The scanner has 1 finding. Approve 1 other definition of everything anyway?")
	v.Tools[0].ApprovalStatus, v.Tools[1].ApprovalStatus, v.Tools[2].ApprovalStatus = waits, waits, ops.ApprovalStatus{Reason: approval.Blocked}
	v.Tools[2].ScanResult = suspect // it stays blocked
	check("The scanner has 1 finding. Approve 2 tools and 1 other definition of everything anyway?")
	v.Offers[13].ScanResult = clean
	check("Approve 2 tools and 1 other definition of everything?")
	v.Stage = ops.StageDefinitions
	check("The scanner has 1 finding. Approve everything with 13 tools and 14 other definitions anyway?")
}

// upstream get has the whole note of the list. For instructions it names the command that the list of pending approvals names.
func TestServerDetailHasTheNoteOfTheList(t *testing.T) {
	t.Parallel()
	for _, s := range []ops.ServerView{
		{Name: "s", Enabled: true, State: "ready", Offers: &ops.OfferCounts{Instructions: &ops.OfferCount{Total: 1, Waiting: 1}}},
		{Name: "s", Enabled: true, State: "ready", Offers: &ops.OfferCounts{Prompts: &ops.OfferCount{Total: 3, Waiting: 2}}},
		{Name: "s", Enabled: true, State: "connecting", Detail: "installing with npx, 40 s"},
		{Name: "s", Enabled: true, State: "idle", Hint: "It was never started."},
		{Name: "s", Enabled: true, State: "needs_login", NeedsLogin: true, Detail: "it requires a login"},
		{Name: "s", Enabled: true, State: "stopped", Quarantined: true},
		exampleServers()[1],
	} {
		var out bytes.Buffer
		writeServerDetail(newInvocation(Deps{Stdout: &out}).newPrinter(&out), s)
		if note := toOneLine(serverNote(s)); note == "" || strings.Count(out.String(), note) != 1 {
			t.Errorf("the note %q is not in\n%s", note, &out)
		}
	}
	waiting := ops.Waiting{Offers: []ops.WaitingOffer{{Kind: tool.KindInstructions, Server: "a b"}}}
	note := waitingPrimitivesText(ops.ServerView{Name: "a b", Offers: &ops.OfferCounts{Instructions: &ops.OfferCount{Total: 1, Waiting: 1}}})
	if command := toWaitingRows(waiting)[0].command; note != "its instructions await approval: "+command {
		t.Errorf("%s, but %s", note, command)
	}
}
