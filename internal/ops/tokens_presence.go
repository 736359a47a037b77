package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
)

// PresenceView is the state of presence, the proof that a user makes decisions.
type PresenceView struct {
	On          bool               `json:"on" doc:"Whether changes that grant more access require a signature."`
	Kind        presence.ProofKind `json:"kind" doc:"The kind of proof that the current anchor verifies: passphrase or passkey."`
	Void        string             `json:"void,omitempty" doc:"Why signed decisions are not valid. Absent if they are."`
	Remedy      string             `json:"remedy,omitempty" doc:"How to fix the problem in void."`
	Since       *time.Time         `json:"since,omitempty"`
	Fingerprint string             `json:"fingerprint,omitempty" doc:"The fingerprint of the current anchor. Absent if there is none."`
	Anchor      json.RawMessage    `json:"anchor,omitempty" type:"object" doc:"The current anchor. Its key is encrypted with the passphrase."`
	Head        string             `json:"head" doc:"The fingerprint that the next anchor must name as its predecessor."`
	ResetAt     *time.Time         `json:"reset_at,omitempty" doc:"The time of the last reset. Absent if there is none."`
	CallOff     bool               `json:"call_off,omitempty" doc:"Whether the reset can be cancelled with a signature of the anchor."`
	MaySet      bool               `json:"may_set" doc:"Whether an anchor can be set without a signature of another one."`
	MayJoin     bool               `json:"may_join" doc:"Whether a signature of the anchor can restore its fingerprint in the places where it is missing."`
	Places      []PresencePlace    `json:"places" doc:"The places that store the fingerprint, in addition to the database."`
	Signed      int                `json:"signed" doc:"The number of valid signed statements."`
	Bad         []string           `json:"bad" doc:"The nonces of signed statements that are invalid, and the anchors that cannot be read."`
	Unsigned    []string           `json:"unsigned" doc:"Decisions that are not valid because they have no signature."`
}

// UnprovenReason names the decisions without a valid signature. It returns "" if all are signed or presence is off.
func (a *AccessOperations) UnprovenReason(ctx context.Context) (string, error) {
	v, err := a.Presence(ctx, Caller{}, Nothing{})
	switch {
	case err != nil || !v.On:
		return "", err
	case len(v.Bad) > 0:
		return fmt.Sprintf("%d signatures of decisions are invalid: %s.", len(v.Bad), problem.ClipForDisplay(strings.Join(v.Bad, ", "), maxNamed)), nil
	case v.Void != "":
		return v.Void, nil
	case len(v.Unsigned) > 0:
		return fmt.Sprintf("%d decisions have no signature: %s.", len(v.Unsigned), problem.ClipForDisplay(strings.Join(v.Unsigned, ", "), maxNamed)), nil
	}
	return "", nil
}

// maxNamed limits the length of the list in UnprovenReason, in bytes.
const maxNamed = 2000

// PresencePlace is a storage location of the anchor's fingerprint.
type PresencePlace struct {
	Name  string                    `json:"name"`
	State presence.FingerprintState `json:"state" doc:"The state of the fingerprint in this place."`
}

// SetAnchorRequest is a request to set an anchor.
type SetAnchorRequest struct {
	Anchor json.RawMessage `json:"anchor" type:"object" required:"true" doc:"The anchor, in the form of GET /presence. It never contains the passphrase."`
}

// Example returns an example for the OpenAPI document.
func (SetAnchorRequest) Example() string {
	return `{"anchor": {"kind": "none", "since": "2026-11-26T10:00:00Z", "before": "sha256:0000000000000000000000000000000000000000000000000000000000000000"}}`
}

// Presence returns the state of presence.
func (a *AccessOperations) Presence(ctx context.Context, _ Caller, _ Nothing) (PresenceView, error) {
	s, err := a.gateway.Presence.Status(ctx)
	if err != nil {
		return PresenceView{}, decisionsUnreadableError(err)
	}
	v := PresenceView{On: s.On, Kind: s.Kind, Void: s.Void, Remedy: s.Remedy, Head: a.gateway.Presence.HeadFingerprint().String(), ResetAt: timeOrNil(s.Reset),
		CallOff: s.MayCancelReset, MaySet: s.MaySet, MayJoin: s.MayJoin, Signed: s.Signed, Bad: s.Bad}
	if s.Anchor != nil {
		v.Since, v.Fingerprint = &s.Anchor.Since, s.Anchor.Fingerprint().String()
		if v.Anchor, err = s.Anchor.StoredJSON(); err != nil {
			return v, err
		}
	}
	v.Places = mapSlice(s.Places, func(p presence.FingerprintStatus) PresencePlace { return PresencePlace(p) })
	if s.On { // another program may have changed the database
		if err := a.gateway.Book.Reload(ctx, approval.DecisionEvent{}); err != nil {
			return PresenceView{}, decisionsUnreadableError(err)
		}
		v.Unsigned, err = a.unsignedDecisions(ctx)
	}
	return v, err
}

func decisionsUnreadableError(err error) error {
	return problem.New(problem.ServerUnavailable, "The decisions cannot be read yet.", "Try again in a moment; see `mcpproxy status`.").Because(err)
}

// unsignedDecisions returns the names of the decisions that are not valid because they are not signed.
func (a *AccessOperations) unsignedDecisions(ctx context.Context) (names []string, err error) {
	claims, err := AllTokenClaims(ctx, a.tokens)
	for _, c := range append(claims, a.gateway.Book.UnsignedClaims()...) {
		if !a.gateway.Presence.IsConfirmed(c) {
			names = append(names, string(c))
		}
	}
	return names, err
}

// SetPresenceAnchor sets the anchor that proves a user's decisions.
func (a *AccessOperations) SetPresenceAnchor(ctx context.Context, c Caller, in SetAnchorRequest) (PresenceView, error) {
	anchor, err := presence.ParseAnchor(in.Anchor)
	if err != nil {
		return PresenceView{}, problem.New(problem.InvalidParameter, "This is not an anchor: "+err.Error()+".", "Use `mcpproxy presence set`.").With("parameter", "anchor")
	}
	return a.changePresence(ctx, c, "set_presence", string(anchor.Kind), func() error { return a.gateway.Presence.SetAnchor(ctx, anchor) })
}

// StoreMissingAnchorFingerprints stores the anchor's fingerprint in all places where it is missing.
func (a *AccessOperations) StoreMissingAnchorFingerprints(ctx context.Context, c Caller, _ Nothing) (PresenceView, error) {
	return a.changePresence(ctx, c, "join_presence", "", func() error { return a.gateway.Presence.AddFingerprintToPlaces(ctx) })
}

// ResetPresence invalidates all signatures.
func (a *AccessOperations) ResetPresence(ctx context.Context, c Caller, _ Nothing) (PresenceView, error) {
	return a.changePresence(ctx, c, "reset_presence", "", func() error { return a.gateway.Presence.Reset(ctx) })
}

// CancelPresenceReset cancels a reset.
func (a *AccessOperations) CancelPresenceReset(ctx context.Context, c Caller, _ Nothing) (PresenceView, error) {
	return a.changePresence(ctx, c, "call_off_reset", "", func() error { return a.gateway.Presence.CancelReset(ctx) })
}

// changePresence reloads the anchor, then runs and records a change of the anchor. Only a user may make it.
func (a *AccessOperations) changePresence(ctx context.Context, c Caller, action, detail string, do func() error) (PresenceView, error) {
	// Another instance may have set an anchor, or the delay of a reset may have ended.
	if err := a.gateway.Presence.Reload(ctx); err != nil {
		return PresenceView{}, decisionsUnreadableError(err)
	}
	if err := a.gateway.runConfigChange(c, action, detail, do); err != nil {
		return PresenceView{}, err
	}
	return a.Presence(ctx, c, Nothing{})
}
