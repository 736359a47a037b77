package api

import "mcpproxy/internal/ops"

// The operations on pending calls and leases.
var (
	ListPending = declareOperation("GET /pending", "listPending", Look, "List held calls, oldest first", (*ops.CallApprovals).PendingCalls)
	GetPending  = declareOperation("GET /pending/{id}", "getPending", Look, "Get a held call, pending or answered, with its arguments", (*ops.CallApprovals).PendingCall)
	ApproveCall = declareOperation("POST /pending/{id}/approve", "approveCall", Decide, "Approve a held call; the client must make exactly this call within 15 minutes, once", (*ops.CallApprovals).ApproveCall)
	DenyCall    = declareOperation("POST /pending/{id}/deny", "denyCall", Decide, "Deny a held call; the agent gets the reason", (*ops.CallApprovals).DenyCall)
	ListLeases  = declareOperation("GET /leases", "listLeases", Look, "List active leases", (*ops.CallApprovals).Leases)
	GrantLease  = declareOperation("POST /leases", "grantLease", Decide, "Grant a lease: calls that it covers run without approval", (*ops.CallApprovals).GrantLease)
	RevokeLease = declareOperation("DELETE /leases/{id}", "revokeLease", Decide, "End a lease", (*ops.CallApprovals).RevokeLease)
)
