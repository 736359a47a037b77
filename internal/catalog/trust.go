package catalog

import (
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
)

const (
	// admitTime is how long storing what is accepted may hold up a server.
	admitTime = 5 * time.Second
	// admitAgain is the time between two tries to accept what could not be
	// stored.
	admitAgain = 5 * time.Second
)

// Admission is what became of the definitions of one list that were not
// approved before.
type Admission struct {
	Server   string
	Kind     tool.Kind
	Trust    approval.Trust
	Accepted []approval.Evaluation // by the trust in the server
	Held     []approval.Evaluation // that wait for a person from now on
}

// Quarantined reports whether a server waits for review: its configuration says
// so, or it is launched otherwise than the person approved who reviewed it.
func Quarantined(s config.Server, decided *approval.View) bool {
	reviewed := decided.Reviewed()
	return s.Quarantined || reviewed != nil && *reviewed != s.LaunchFingerprint()
}

// LaunchApproved reports whether a person has approved how the server is
// launched.
func LaunchApproved(s config.Server, decided *approval.View) bool {
	launch := decided.Launch()
	return launch != nil && launch.Fingerprint == s.LaunchFingerprint()
}

// MayStart reports whether a server may be started or contacted: it is enabled,
// and if it waits for review, a person has approved how it is launched. While
// it is not known what was approved, nothing may.
func MayStart(s config.Server, decided *approval.View) bool {
	return s.Enabled && decided.Known() && (!Quarantined(s, decided) || LaunchApproved(s, decided))
}
