package api

import "mcpproxy/internal/ops"

// Pending calls and leases.
var (
	ListPending = declareOperation("GET /pending", "listPending", Look, "List held calls, oldest first", (*ops.CallApprovals).PendingCalls)
	GetPending  = declareOperation("GET /pending/{id}", "getPending", Look, "Get a held call, pending or answered, with its arguments", (*ops.CallApprovals).PendingCall)
	ApproveCall = declareOperation("POST /pending/{id}/approve", "approveCall", Decide, "Approve a call that waits: this very one, once, within a quarter of an hour", (*ops.CallApprovals).ApproveCall)
	DenyCall    = declareOperation("POST /pending/{id}/deny", "denyCall", Decide, "Deny a call that waits; the agent is told the reason", (*ops.CallApprovals).DenyCall)
	ListLeases  = declareOperation("GET /leases", "listLeases", Look, "The leases that run: calls that are not asked about for a while", (*ops.CallApprovals).Leases)
	GrantLease  = declareOperation("POST /leases", "grantLease", Decide, "Give a lease: calls within it are not asked about", (*ops.CallApprovals).GrantLease)
	RevokeLease = declareOperation("DELETE /leases/{id}", "revokeLease", Decide, "End a lease", (*ops.CallApprovals).RevokeLease)
)
