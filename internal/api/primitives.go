package api

import (
	"net/url"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/ops"
)

// PrimitiveOps are the operations on definitions of one kind: prompts, resources, resource templates or instructions.
type PrimitiveOps struct {
	Approve, Block, Unblock, Withdraw *Op[ops.PrimitiveDecision, ops.OfferDiff]
	Diff                              *Op[ops.PrimitiveRef, ops.OfferDiff]
}

// declarePrimitiveOps declares the operations for one kind. A name is one path segment, as for tools.
func declarePrimitiveOps(kind tool.DefinitionKind, path, id, doc string) PrimitiveOps {
	path, doc = "/servers/{name}/"+path, doc+", percent-encoded as one segment, with %2F for a slash."
	what := "the definition of the " + kind.Label()
	ofKind := func(in *ops.PrimitiveRef, _ url.Values) error { in.Kind = kind; return nil }
	about := func(in *ops.PrimitiveDecision, given url.Values) error { return ofKind(&in.PrimitiveRef, given) }
	return PrimitiveOps{
		Approve: declareOperation("POST "+path+"/approve", "approve"+id, Decide,
			"Approve "+what+" with this fingerprint", (*ops.Admin).ApprovePrimitive).describeParam("item", doc).withValidation(about),
		Block: declareOperation("POST "+path+"/block", "block"+id, Decide,
			"Block "+what+" with this fingerprint; later definitions are not accepted automatically", (*ops.Admin).BlockPrimitive).describeParam("item", doc).withValidation(about),
		Unblock: declareOperation("POST "+path+"/unblock", "unblock"+id, Decide,
			"Unblock "+what+" with this fingerprint; it waits for approval again", ops.UnblockPrimitive).describeParam("item", doc).withValidation(about),
		Withdraw: declareOperation("POST "+path+"/withdraw", "withdraw"+id, Decide,
			"Withdraw the approval of "+what+" with this fingerprint: the definition waits again, and the previous approval applies again", (*ops.Admin).WithdrawPrimitiveApproval).describeParam("item", doc).withValidation(about),
		Diff: declareOperation("GET "+path+"/diff", "diff"+id, Look,
			"Compare "+what+" with the approved one", (*ops.Admin).DiffPrimitive).describeParam("item", doc).withValidation(ofKind),
	}
}
