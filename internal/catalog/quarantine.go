package catalog

import (
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
)

const (
	// admitTimeout limits the time for which storing approvals may delay a server.
	admitTimeout = 5 * time.Second
	// admitRetryInterval is the time between two attempts to store approvals.
	admitRetryInterval = 5 * time.Second
)

// AdmissionOutcome contains the results for those definitions of one list that were not approved before.
type AdmissionOutcome struct {
	Server   string
	Kind     tool.DefinitionKind
	Trust    approval.Trust
	Accepted []approval.Evaluation // automatically, by the server's trust
	Held     []approval.Evaluation // newly awaiting approval
}

// IsQuarantined reports whether a server awaits review, because of its configuration or because its launch differs from
// the reviewed one.
func IsQuarantined(s config.Server, decided *approval.ServerView) bool {
	reviewed := decided.ReviewedLaunch()
	return s.Quarantined || reviewed != nil && *reviewed != s.LaunchFingerprint()
}

// IsLaunchApproved reports whether a user has approved the server's current launch.
func IsLaunchApproved(s config.Server, decided *approval.ServerView) bool {
	launch := decided.ApprovedLaunch()
	return launch != nil && launch.Fingerprint == s.LaunchFingerprint()
}

// MayStartServer reports whether a server may be started or contacted: it is enabled and, if it
// awaits review, its launch is approved. While the approvals are unknown, no server may.
func MayStartServer(s config.Server, decided *approval.ServerView) bool {
	return s.Enabled && decided.IsLoaded() && (!IsQuarantined(s, decided) || IsLaunchApproved(s, decided))
}
