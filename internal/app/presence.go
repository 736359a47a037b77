package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream/secret"
)

// newGate makes what asks for a person's presence: statements are in the database, the
// fingerprint of the anchor in the keyring and in the log, too. What is signed counts of the
// configuration first, for what is started follows from that.
func (d *daemon) newGate(dir string) *presence.Gate {
	d.verify = func(ctx context.Context) error {
		if err := d.presence.Ready(ctx); err != nil {
			return err
		}
		return d.live.Verify(ops.Signed{Gate: d.presence}, d.instance())
	}
	d.signedChanged = func(ctx context.Context) {
		d.byName.listen(d.tcp.Addr())
		if err := d.verify(ctx); err != nil {
			d.logger.Error("what was confirmed of the configuration cannot be looked at again", "error", err)
		}
		if err := d.book.Reload(ctx, approval.Decided{}); err != nil {
			d.logger.Error("what is decided cannot be read again", "error", err)
		}
		d.approvals.WakeAll()
		d.events.PendingChanged()
	}
	return presence.NewGate(presence.Options{
		Store:         d.store.Asks().Presence(),
		Places:        []presence.Place{inKeyring{secret.OpenVault(dir, "presence", d.logger)}, inLog{d}},
		Demanded:      func() presence.Kind { return presence.Kind(d.live.Unconfirmed().Presence) },
		ClaimsInForce: d.inForce, Changed: d.signedChanged, Now: time.Now, Logger: d.logger,
	})
}

// inForce are the claims of everything that counts now, or, where no anchor was ever
// set, of everything that is decided: the configuration may demand one already.
func (d *daemon) inForce(ctx context.Context, first bool) ([]presence.Claim, error) {
	all, err := ops.TokenClaims(ctx, d.tokens)
	if err != nil {
		return nil, err
	}
	if all = append(all, d.book.Unsigned()...); !first {
		all = slices.DeleteFunc(all, func(c presence.Claim) bool { return !d.presence.Confirmed(c) })
	}
	all = append(all, d.book.Claims()...)
	if !first { // the file waits for `config confirm`: whoever has reset presence may have changed it
		return all, nil
	}
	file, err := d.live.PrepareConfirmation()
	return append(all, ops.Claims(file)...), err
}

// anchorAgain is how often the fingerprint of the anchor is put on record, so that it is
// never among what is too old to be kept.
const anchorAgain = 24 * time.Hour

// noteAnchor puts the fingerprint of the anchor on record at a start and each day, as long as
// it is what it was everywhere.
func (d *daemon) noteAnchor(ctx context.Context) {
	again := time.NewTicker(anchorAgain)
	defer again.Stop()
	select {
	case <-ctx.Done():
		return
	case <-d.book.Loaded():
	}
	d.byName.listen(d.tcp.Addr())
	for {
		switch s, err := d.presence.Standing(ctx); {
		case err != nil:
			d.logger.Error("what proves that a person decides cannot be read", "error", err)
		case s.Void != "":
			d.logger.Warn("nothing that widens counts: "+s.Void, "hint", s.Remedy)
		case s.Anchor != nil && s.On:
			if err := (inLog{d}).SetMark(ctx, presence.Mark{Anchor: s.Anchor.Fingerprint()}); err != nil {
				d.logger.Error("the fingerprint of the anchor cannot be put on record", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// inKeyring is the keyring of the system, or the sealed file behind it, as a place of the
// fingerprint.
type inKeyring struct{ vault *secret.Vault }

const anchorKey = "presence anchor"

func (inKeyring) Name() string { return "the keyring" }

func (k inKeyring) Mark(ctx context.Context) (m presence.Mark, err error) {
	text, err := k.vault.Load(ctx, anchorKey)
	if err != nil || text == nil {
		return m, err
	}
	return presence.ParseMark(string(text))
}

func (k inKeyring) SetMark(ctx context.Context, m presence.Mark) error {
	return k.vault.Save(ctx, anchorKey, []byte(m.String()))
}

// inLog is the chained log of this instance as a place of the fingerprint: in the last of
// its records.
type inLog struct{ *daemon }

func (inLog) Name() string { return "the activity log" }

// anchorRecord is the request of such records, which tells instances apart.
func (l inLog) anchorRecord() string { return "presence " + l.instance() }

func (l inLog) Mark(ctx context.Context) (m presence.Mark, err error) {
	page, err := l.log.List(ctx, activity.Filter{Types: []activity.Type{activity.Presence}, RequestID: l.anchorRecord(), Limit: 1})
	switch {
	case err != nil:
		return m, err
	case len(page.Records) == 0:
		return m, nil
	case page.Records[0].Metadata.Action != "anchor":
		return m, errors.New("the last record of the anchor is none")
	}
	return presence.ParseMark(page.Records[0].Metadata.Detail)
}

func (l inLog) SetMark(_ context.Context, m presence.Mark) error {
	return l.log.Append(&activity.Record{Type: activity.Presence, Status: activity.Success, Actor: "system", RequestID: l.anchorRecord(),
		Metadata: activity.Metadata{Action: "anchor", Detail: m.String()}})
}
