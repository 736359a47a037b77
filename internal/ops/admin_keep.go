package ops

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// keepDestructive is what is written about a tool that a person keeps destructive.
const keepDestructive = `{"destructiveHint":true,"readOnlyHint":false}`

// keep writes into the configuration that a tool counts as destructive, whatever
// its server says, if its definition is the one that was seen.
func (a *Admin) keep(ctx context.Context, c Caller, in ToolApproval) error {
	id := tool.ID(in.ToolRef)
	if in.Keep != "destructive" {
		return problem.Newf(problem.InvalidParameter, "Invalid value for keep: '%s'", problem.Brief(in.Keep)).
			WithHint("It is destructive, or left out.").With("parameter", "keep").With("allowed", []string{"destructive"})
	}
	record := Action(c, activity.ConfigChange, id, "keep_destructive", problem.Brief(in.Fingerprint))
	return a.act(c, record, func() error {
		d, err := a.findTool(id)
		if err == nil {
			err = same("The definition of '"+id.String()+"'", d.Fingerprint.String(), in.Fingerprint)
		}
		if err == nil {
			err = a.editor.OverrideHints(a.Permit(ctx), id.Server, id.Tool, json.RawMessage(keepDestructive))
		}
		if err != nil {
			return err
		}
		if t, err := a.FindTool(id); err != nil || t.Effective.Destructive != tool.True || t.Effective.ReadOnly != tool.False {
			return problem.Newf(problem.Conflict, "What hint_overrides says of '%s' has no effect: a pattern further down says otherwise. Nothing is approved.", id).
				WithHint("Change that pattern, or put the tool after it, and try again.").With("holds", "hint_overrides")
		}
		return nil
	})
}

// together refuses a request about none, or about more than are done in one.
func together(n int, what, done, parameter string) error {
	if n > 0 && n <= MostTogether {
		return nil
	}
	return problem.Newf(problem.InvalidParameter, "%d %s are named: from 1 to %d are %s at once.", n, what, MostTogether, done).
		WithHint("Name them in parts.").With("parameter", parameter).With("limit", MostTogether)
}

// ApproveTools approves definitions that were seen, each by itself and on record
// by itself. What a person has to look at one by one is refused: what the scanner
// does not find clean, what loosens a hint, and what a person has refused.
func (a *Admin) ApproveTools(ctx context.Context, c Caller, in ToolsApproval) ([]DecidedTool, error) {
	if err := together(len(in.Tools), "definitions", "approved", "tools"); err != nil {
		return nil, err
	}
	if err := a.permitAll(ctx, c, in); err != nil {
		return nil, err
	}
	all := make([]DecidedTool, len(in.Tools))
	for i, one := range in.Tools {
		all[i].Name = one.Name
		ref, err := one.Ref()
		if seen, decide := (Seen{Fingerprint: one.Fingerprint}), a.permitted(approveClean, definition.approval); err == nil {
			if ref.Kind == tool.KindTool {
				_, err = a.decideTool(ctx, c, ToolRef{Server: ref.Server, Tool: ref.Name}, "approve_tool", &seen, decide)
			} else {
				_, err = a.decideOffer(ctx, c, OfferDecision{OfferRef: ref, Seen: seen}, "approve_", &seen, decide)
			}
		}
		all[i].Problem = err
		if err := ctx.Err(); err != nil {
			return nil, err // who asked is gone
		}
	}
	return all, nil
}

// permitAll asks for a person's presence once for all that can be approved.
func (a *Admin) permitAll(ctx context.Context, c Caller, in ToolsApproval) error {
	if !c.Person() || !a.Presence.On() {
		return nil // who is no person is told so of each
	}
	var claims []claim
	for _, one := range in.Tools {
		ref, err := one.Ref()
		if err != nil {
			continue
		}
		find := a.findOffer
		if ref.Kind == tool.KindTool {
			find = func(OfferRef) (definition, error) {
				return a.findTool(tool.ID{Server: ref.Server, Tool: ref.Name})
			}
		}
		if d, err := find(ref); err == nil && d.Fingerprint.String() == one.Fingerprint {
			claims = append(claims, d.approval())
		}
	}
	return a.Presence.Require(ctx, claims...)
}

// approveClean is approve for what nobody has to look at one by one.
func approveClean(ctx context.Context, b *approval.Book, d definition, by string) error {
	if d.waits.Why == "" {
		return nil // approved by now
	}
	if why := d.alone(); why != "" {
		look := "tools diff " + d.id().String()
		if d.Kind != tool.KindTool {
			look = "approvals"
		}
		return problem.Newf(problem.Conflict, "'%s' is not approved together with others: %s.", d.id(), why).
			WithHint("Look at it with `mcpproxy " + look + "`, then decide about it alone.")
	}
	return approve(ctx, b, d, by)
}
