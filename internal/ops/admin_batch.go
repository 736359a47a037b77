package ops

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// destructiveHints is the hint override for a tool that a user marks as destructive.
const destructiveHints = `{"destructiveHint":true,"readOnlyHint":false}`

// markToolDestructive writes a hint override to the configuration, so that the tool counts as destructive. It requires
// that the tool's definition is the one that the user saw.
func (a *Admin) markToolDestructive(ctx context.Context, c Caller, in ToolApproval) error {
	id := tool.ID(in.ToolRef)
	if in.Keep != "destructive" {
		return problem.Newf(problem.InvalidParameter, "Invalid value for keep: '%s'", problem.ClipName(in.Keep)).
			WithHint("It must be destructive, or absent.").With("parameter", "keep").With("allowed", []string{"destructive"})
	}
	record := newActionRecord(c, activity.ConfigChange, id, "keep_destructive", problem.ClipName(in.Fingerprint))
	return a.runUserAction(c, record, func() error {
		d, err := a.findToolDefinition(id)
		if err == nil {
			err = checkFingerprint("The definition of '"+id.String()+"'", d.Fingerprint.String(), in.Fingerprint)
		}
		if err == nil {
			err = a.editor.SetHintOverride(a.configConfirmFunc(ctx), id.Server, id.Tool, json.RawMessage(destructiveHints))
		}
		if err != nil {
			return err
		}
		if t, err := a.findTool(id); err != nil || t.Effective.Destructive != tool.True || t.Effective.ReadOnly != tool.False {
			return problem.Newf(problem.Conflict, "The entry of '%s' in hint_overrides has no effect, because a later pattern overrides it. Nothing was approved.", id).
				WithHint("Change that pattern, or move the entry after it, and try again.").With("holds", "hint_overrides")
		}
		return nil
	})
}

// checkBatchSize rejects an empty batch and a batch with more than MaxBatch items.
func checkBatchSize(n int, what, done, parameter string) error {
	if n > 0 && n <= MaxBatch {
		return nil
	}
	return problem.Newf(problem.InvalidParameter, "%d %s are named: from 1 to %d are %s at once.", n, what, MaxBatch, done).
		WithHint("Use several requests.").With("parameter", parameter).With("limit", MaxBatch)
}

// ApproveTools approves several definitions that the user saw. Each is decided and recorded separately. It rejects
// blocked definitions and definitions with scanner findings or relaxed hints, because they need a separate review.
func (a *Admin) ApproveTools(ctx context.Context, c Caller, in ToolsApproval) ([]BatchDecision, error) {
	if err := checkBatchSize(len(in.Tools), "definitions", "approved", "tools"); err != nil {
		return nil, err
	}
	if err := a.requirePresenceForBatch(ctx, c, in); err != nil {
		return nil, err
	}
	all := make([]BatchDecision, len(in.Tools))
	for i, one := range in.Tools {
		all[i].Name = one.Name
		ref, err := one.ParseRef()
		if seen, decide := (SeenFingerprint{Fingerprint: one.Fingerprint}), a.withPresenceCheck(approveUnlessReviewNeeded, definitionUnderReview.approvalClaim); err == nil {
			if ref.Kind == tool.KindTool {
				_, err = a.applyToolDecision(ctx, c, ToolRef{Server: ref.Server, Tool: ref.Name}, "approve_tool", &seen, decide)
			} else {
				_, err = a.applyPrimitiveDecision(ctx, c, PrimitiveDecision{PrimitiveRef: ref, SeenFingerprint: seen}, "approve_", &seen, decide)
			}
		}
		all[i].Problem = err
		if err := ctx.Err(); err != nil {
			return nil, err // the client disconnected
		}
	}
	return all, nil
}

// requirePresenceForBatch requires proof of presence once for all definitions of the batch that can be approved.
func (a *Admin) requirePresenceForBatch(ctx context.Context, c Caller, in ToolsApproval) error {
	if !c.IsUser() || !a.Presence.IsOn() {
		return nil // for other actors, each decision returns an error
	}
	var claims []claimToSign
	for _, one := range in.Tools {
		ref, err := one.ParseRef()
		if err != nil {
			continue
		}
		find := a.findPrimitiveDefinition
		if ref.Kind == tool.KindTool {
			find = func(PrimitiveRef) (definitionUnderReview, error) {
				return a.findToolDefinition(tool.ID{Server: ref.Server, Tool: ref.Name})
			}
		}
		if d, err := find(ref); err == nil && d.Fingerprint.String() == one.Fingerprint {
			claims = append(claims, d.approvalClaim())
		}
	}
	return a.Presence.RequireSigned(ctx, claims...)
}

// approveUnlessReviewNeeded approves a definition that needs no separate review.
func approveUnlessReviewNeeded(ctx context.Context, b *approval.Book, d definitionUnderReview, by string) error {
	if d.evaluation.Why == "" {
		return nil // it is already approved
	}
	if why := d.separateReviewReason(); why != "" {
		look := "tools diff " + d.toolID().String()
		if d.Kind != tool.KindTool {
			look = "approvals"
		}
		return problem.Newf(problem.Conflict, "'%s' is not approved together with others: %s.", d.toolID(), why).
			WithHint("Look at it with `mcpproxy " + look + "`, then decide about it separately.")
	}
	return approveDefinition(ctx, b, d, by)
}
