package approval_test

import (
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/testutil/approvaltest"
	"mcpproxy/internal/testutil/presencetest"
)

// TestUnsignedDecisions checks that an unsigned decision is not valid when it is loaded, and stays stored.
// Definitions that the trust setting accepted are accepted again.
func TestUnsignedDecisions(t *testing.T) {
	memory := new(approvaltest.MemoryStore)
	before := memory.NewBook() // without presence
	admit(t, before, auto, candidate("trusted", 1))
	signed, forged, launch := candidate("signed", 2), candidate("forged", 3), tool.Fingerprint{9}
	for _, c := range []approval.CandidateDefinition{signed, forged} {
		if err := before.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{c}, &launch); err != nil {
			t.Fatal(err)
		}
	}
	person := presencetest.NewSigner(t)
	person.Sign(approval.ApprovalClaim("s", signed))
	load := func() *approval.Book {
		t.Helper()
		b := approval.NewBook(memory, person.Gate)
		if err := b.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := load()
	v := b.ServerView("s")
	if !approves(v, "signed", tool.Fingerprint{2}) || approves(v, "forged", tool.Fingerprint{3}) || approves(v, "trusted", tool.Fingerprint{1}) {
		t.Errorf("%+v %+v %+v", v.ToolDecisions("signed"), v.ToolDecisions("forged"), v.ToolDecisions("trusted"))
	}
	if v.ApprovedLaunch() != nil || v.ReviewedLaunch() == nil || *v.ReviewedLaunch() == launch {
		t.Errorf("the launch: %v, %v", v.ApprovedLaunch(), v.ReviewedLaunch())
	}
	if names := b.UnsignedClaims(); len(names) != 2 {
		t.Errorf("unsigned: %q", names)
	}
	// Another definition of an approved tool is not a new tool, signed or not.
	if judged := admit(t, b, approval.EvaluationRules{Trust: approval.Scan, UnknownIsNew: true}, candidate("forged", 4)); judged[0].Accepted || judged[0].Why != approval.Changed {
		t.Errorf("%+v", judged)
	}
	admit(t, b, auto, candidate("trusted", 1))
	if !approves(b.ServerView("s"), "trusted", tool.Fingerprint{1}) {
		t.Error("a definition that the trust setting accepts is not accepted again")
	}
	if err := b.Reload(t.Context(), approval.DecisionEvent{}); err != nil || !approves(b.ServerView("s"), "trusted", tool.Fingerprint{1}) {
		t.Errorf("a definition that this process accepted is no longer accepted: %v", err)
	}
	// The approval stays stored regardless of other decisions about the tool, because it may be signed later.
	if err := b.SwitchTool(t.Context(), tool.ID{Server: "s", Tool: "forged"}, false, "admin"); err != nil {
		t.Fatal(err)
	}
	person.Sign(approval.ApprovalClaim("s", forged), approval.LaunchClaim("s", launch))
	person.Restart()
	b = load()
	if v := b.ServerView("s"); !v.ToolDecisions("forged").Approves(tool.Fingerprint{3}) || v.ApprovedLaunch() == nil || v.ToolDecisions("forged").Off == nil {
		t.Errorf("signed later: %+v, %v", v.ToolDecisions("forged"), v.ApprovedLaunch())
	}
	// A later signature does not approve a definition that was refused in the meantime.
	unsigned := candidate("refused", 5)
	if err := memory.NewBook().Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{unsigned}, nil); err != nil {
		t.Fatal(err)
	}
	if err := load().Block(t.Context(), tool.KindTool, tool.ID{Server: "s", Tool: "refused"}, tool.Fingerprint{5}, "admin"); err != nil {
		t.Fatal(err)
	}
	person.Sign(approval.ApprovalClaim("s", unsigned))
	if approves(load().ServerView("s"), "refused", tool.Fingerprint{5}) {
		t.Error("a refused definition is approved")
	}
}
