package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream/secret"
)

// newPresenceGate returns the presence gate. Statements are in the database; the anchor's fingerprint is also in the keyring and the log. Signatures are
// applied to the configuration first, because it decides which servers start.
func (d *daemon) newPresenceGate(dir string) *presence.Gate {
	d.verify = func(ctx context.Context) error {
		if err := d.presence.EnsureLoaded(ctx); err != nil {
			return err
		}
		return d.live.SetVerifier(ops.ConfigClaimChecker{Gate: d.presence}, d.instanceName())
	}
	d.signedChanged = func(ctx context.Context) {
		d.loopback.openMissing(d.tcp.Addr())
		if err := d.verify(ctx); err != nil {
			d.logger.Error("the confirmed configuration cannot be read again", "error", err)
		}
		if err := d.book.Reload(ctx, approval.DecisionEvent{}); err != nil {
			d.logger.Error("decisions cannot be read again", "error", err)
		}
		d.approvals.WakeAll()
		d.events.PendingChanged()
	}
	return presence.NewGate(presence.Options{
		Store:         d.store.ApprovalQuestions().PresenceProofs(),
		Places:        []presence.FingerprintStore{keyringFingerprintStore{secret.OpenVault(dir, "presence", d.logger)}, activityLogFingerprintStore{d}},
		RequiredKind:  func() presence.ProofKind { return presence.ProofKind(d.live.Unconfirmed().Presence) },
		CurrentClaims: d.claimsInForce, Changed: d.signedChanged, Now: time.Now, Logger: d.logger,
	})
}

// claimsInForce returns the claims of everything that is in force now. Before the first anchor it returns the claims of everything decided, because the
// configuration may already require presence.
func (d *daemon) claimsInForce(ctx context.Context, first bool) ([]presence.Claim, error) {
	all, err := ops.AllTokenClaims(ctx, d.tokens)
	if err != nil {
		return nil, err
	}
	if all = append(all, d.book.UnsignedClaims()...); !first {
		all = slices.DeleteFunc(all, func(c presence.Claim) bool { return !d.presence.IsConfirmed(c) })
	}
	all = append(all, d.book.AllClaims()...)
	if !first { // the file needs `config confirm`, because it may have changed since the reset
		return all, nil
	}
	file, err := d.live.PrepareConfirmation()
	return append(all, ops.ToPresenceClaims(file)...), err
}

// anchorInterval is how often the anchor's fingerprint is recorded, so that retention never deletes it.
const anchorInterval = 24 * time.Hour

// recordAnchorFingerprintDaily records the anchor's fingerprint at each start and each day, while all places agree.
func (d *daemon) recordAnchorFingerprintDaily(ctx context.Context) {
	again := time.NewTicker(anchorInterval)
	defer again.Stop()
	select {
	case <-ctx.Done():
		return
	case <-d.book.LoadedChan():
	}
	d.loopback.openMissing(d.tcp.Addr())
	for {
		switch s, err := d.presence.Status(ctx); {
		case err != nil:
			d.logger.Error("the presence key cannot be read", "error", err)
		case s.Void != "":
			d.logger.Warn("decisions that grant more access are not valid: "+s.Void, "hint", s.Remedy)
		case s.Anchor != nil && s.On:
			if err := (activityLogFingerprintStore{d}).SetMark(ctx, presence.FingerprintMark{Anchor: s.Anchor.Fingerprint()}); err != nil {
				d.logger.Error("the fingerprint of the anchor cannot be recorded", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// keyringFingerprintStore stores the fingerprint in the system keyring, or the encrypted file that replaces it.
type keyringFingerprintStore struct{ vault *secret.Vault }

const anchorKey = "presence anchor"

func (keyringFingerprintStore) Name() string { return "the keyring" }

func (k keyringFingerprintStore) Mark(ctx context.Context) (m presence.FingerprintMark, err error) {
	text, err := k.vault.Load(ctx, anchorKey)
	if err != nil || text == nil {
		return m, err
	}
	return presence.ParseFingerprintMark(string(text))
}

func (k keyringFingerprintStore) SetMark(ctx context.Context, m presence.FingerprintMark) error {
	return k.vault.Save(ctx, anchorKey, []byte(m.String()))
}

// activityLogFingerprintStore stores the fingerprint in a record of this instance's chained log.
type activityLogFingerprintStore struct{ *daemon }

func (activityLogFingerprintStore) Name() string { return "the activity log" }

// anchorRequestID returns the request id of such records, which is different for each instance.
func (l activityLogFingerprintStore) anchorRequestID() string { return "presence " + l.instanceName() }

func (l activityLogFingerprintStore) Mark(ctx context.Context) (m presence.FingerprintMark, err error) {
	page, err := l.log.List(ctx, activity.Filter{Types: []activity.Type{activity.Presence}, RequestID: l.anchorRequestID(), Limit: 1})
	switch {
	case err != nil:
		return m, err
	case len(page.Records) == 0:
		return m, nil
	case page.Records[0].Metadata.Action != "anchor":
		return m, errors.New("the last record of the anchor does not exist")
	}
	return presence.ParseFingerprintMark(page.Records[0].Metadata.Detail)
}

func (l activityLogFingerprintStore) SetMark(_ context.Context, m presence.FingerprintMark) error {
	return l.log.Append(&activity.Record{Type: activity.Presence, Status: activity.Success, Actor: "system", RequestID: l.anchorRequestID(),
		Metadata: activity.Metadata{Action: "anchor", Detail: m.String()}})
}

// signedRetryInterval is the time between two attempts to read the signatures.
const signedRetryInterval = time.Second

// signatureAwaitingStore delays the catalog's stored tools until the signatures and the confirmed configuration are known.
type signatureAwaitingStore struct {
	store.Database
	verify func(context.Context) error
	logger *slog.Logger
}

// LoadTools implements catalog.Store.
func (v signatureAwaitingStore) LoadTools(ctx context.Context) (map[string][]json.RawMessage, error) {
	for {
		err := v.verify(ctx)
		if err == nil {
			return v.Database.LoadTools(ctx)
		}
		if ctx.Err() != nil { // stopped before
			return nil, ctx.Err()
		}
		v.logger.Error("no server starts, because the signatures have not been read yet", "error", err)
		sleep(ctx, signedRetryInterval)
	}
}

// signatureAwaitingTokenStore delays the stored tokens until the signatures are known.
type signatureAwaitingTokenStore struct {
	auth.TokenStore
	gate *presence.Gate
}

// LoadTokens implements auth.TokenStore.
func (s signatureAwaitingTokenStore) LoadTokens(ctx context.Context) ([]auth.Token, error) {
	if err := s.gate.EnsureLoaded(ctx); err != nil {
		return nil, err
	}
	return s.TokenStore.LoadTokens(ctx)
}

// configSignal signals that the configuration has changed.
type configSignal chan struct{}

// PrepareConfig implements config.Component.
func (d configSignal) PrepareConfig(*config.Config) (func(), error) {
	return func() {
		select {
		case d <- struct{}{}:
		default:
		}
	}, nil
}

// followPresenceSetting calls changed whenever the file requires another kind of presence.
func (d configSignal) followPresenceSetting(ctx context.Context, live *config.LiveConfig, changed func(context.Context)) {
	for last := live.Unconfirmed().Presence; ; {
		select {
		case <-ctx.Done():
			return
		case <-d:
		}
		if now := live.Unconfirmed().Presence; now != last {
			last = now
			changed(ctx)
		}
	}
}
