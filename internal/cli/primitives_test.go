package cli

import (
	"bytes"
	"testing"

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
