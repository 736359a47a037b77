package api

import (
	"context"

	"mcpproxy/internal/ops"
)

// The operations that approve several definitions or withdraw an approval.
var (
	ApproveTools = declareOperation("POST /approvals/approve", "approveTools", Decide, "Approve several definitions, each with its own result; definitions with findings or relaxed hints must be approved one by one", approveTools).withTimeout(restartTimeout)
	WithdrawTool = declareOperation("POST "+oneTool+"/withdraw", "withdrawTool", Decide, "Withdraw the approval of the definition with this fingerprint: the definition needs review again, and an approval that it replaced is valid again", (*ops.Admin).WithdrawToolApproval)
)

// ApprovedTools lists the result of each approval, in order.
type ApprovedTools struct {
	Results []ApprovedTool `json:"results"`
}

// ApprovedTool is the result of one approval.
type ApprovedTool struct {
	Name    string           `json:"name" doc:"The tool id: server:tool."`
	OK      bool             `json:"ok" doc:"Whether the definition was approved."`
	Problem *problemDocument `json:"problem,omitempty" doc:"Why the definition was not approved. Absent if it was."`
}

// RefusalError returns the reason why the definition was not approved, or nil if it was approved.
func (t ApprovedTool) RefusalError() error { return t.Problem.toProblem() }

func approveTools(a *ops.Admin, ctx context.Context, c ops.Caller, in ops.ToolsApproval) (ApprovedTools, error) {
	all, err := a.ApproveTools(ctx, c, in)
	return NewApprovedTools(all), err
}

// NewApprovedTools converts the results of a batch approval.
func NewApprovedTools(all []ops.BatchDecision) (out ApprovedTools) {
	for _, one := range all {
		result := ApprovedTool{Name: one.Name, OK: one.Problem == nil}
		if one.Problem != nil {
			document := newProblemDocument(one.Problem)
			result.Problem = &document
		}
		out.Results = append(out.Results, result)
	}
	return out
}
