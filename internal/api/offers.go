package api

import (
	"net/url"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/ops"
)

// OfferOps are the operations on one kind of what servers offer beside tools.
type OfferOps struct {
	Approve, Block, Unblock, Withdraw *Op[ops.OfferDecision, ops.OfferDiff]
	Diff                              *Op[ops.OfferRef, ops.OfferDiff]
}

// declareOffers declares them for one kind. As with tools a name or an address is
// one segment.
func declareOffers(kind tool.Kind, path, id, doc string) OfferOps {
	path, doc = "/servers/{name}/"+path, doc+", percent-encoded as one segment: a slash in it is %2F."
	what := "the definition of the " + kind.Label()
	ofKind := func(in *ops.OfferRef, _ url.Values) error { in.Kind = kind; return nil }
	about := func(in *ops.OfferDecision, given url.Values) error { return ofKind(&in.OfferRef, given) }
	return OfferOps{
		Approve: declare("POST "+path+"/approve", "approve"+id, Decide,
			"Approve "+what+" that has this fingerprint", (*ops.Admin).ApproveOffer).describe("item", doc).checked(about),
		Block: declare("POST "+path+"/block", "block"+id, Decide,
			"Refuse "+what+" that has this fingerprint: none is accepted by itself from then on", (*ops.Admin).BlockOffer).describe("item", doc).checked(about),
		Unblock: declare("POST "+path+"/unblock", "unblock"+id, Decide,
			"End the refusal of "+what+" that has this fingerprint: it waits again", ops.UnblockOffer).describe("item", doc).checked(about),
		Withdraw: declare("POST "+path+"/withdraw", "withdraw"+id, Decide,
			"Take back the approval of "+what+" that has this fingerprint: it waits again, and what was approved before is approved", (*ops.Admin).WithdrawOffer).describe("item", doc).checked(about),
		Diff: declare("GET "+path+"/diff", "diff"+id, Look,
			"T"+what[1:]+" beside the approved one, word by word", (*ops.Admin).DiffOffer).describe("item", doc).checked(ofKind),
	}
}
