package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/store"
)

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
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(signedRetryInterval):
		}
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
