package catalog

import (
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
)

const (
	// admitTimeout bounds how long storing approvals may delay a server.
	admitTimeout = 5 * time.Second
	// admitRetryInterval is the time between two attempts to store approvals.
	admitRetryInterval = 5 * time.Second
)

// Admission is the outcome for the definitions of one list that were not approved before.
type Admission struct {
	Server   string
	Kind     tool.Kind
	Trust    approval.Trust
	Accepted []approval.Evaluation // automatically, by the server's trust
	Held     []approval.Evaluation // newly awaiting approval
}

// Quarantined reports whether a server awaits review: its configuration says so, or its
// launch differs from the reviewed one.
func Quarantined(s config.Server, decided *approval.ServerView) bool {
	reviewed := decided.ReviewedLaunch()
	return s.Quarantined || reviewed != nil && *reviewed != s.LaunchFingerprint()
}

// LaunchApproved reports whether a user has approved the server's current launch.
func LaunchApproved(s config.Server, decided *approval.ServerView) bool {
	launch := decided.ApprovedLaunch()
	return launch != nil && launch.Fingerprint == s.LaunchFingerprint()
}

// MayStart reports whether a server may be started or contacted: it is enabled and, if it
// awaits review, its launch is approved. While the approvals are unknown, no server may.
func MayStart(s config.Server, decided *approval.ServerView) bool {
	return s.Enabled && decided.IsLoaded() && (!Quarantined(s, decided) || LaunchApproved(s, decided))
}
