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

// signedAgain is the time between two tries to read what is signed.
const signedAgain = time.Second

// verified is the store as the catalog has it: what it remembers is there once it is known
// what is signed, and what of the configuration counts.
type verified struct {
	store.Database
	verify func(context.Context) error
	logger *slog.Logger
}

// LoadTools implements catalog.Store.
func (v verified) LoadTools(ctx context.Context) (map[string][]json.RawMessage, error) {
	for {
		err := v.verify(ctx)
		if err == nil {
			return v.Database.LoadTools(ctx)
		}
		if ctx.Err() != nil { // stopped before it was known
			return nil, ctx.Err()
		}
		v.logger.Error("it is not known yet what is signed, so that nothing is started", "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(signedAgain):
		}
	}
}

// signedTokens are the tokens in the store, which are known once it is known what is signed.
type signedTokens struct {
	auth.TokenStore
	gate *presence.Gate
}

// LoadTokens implements auth.TokenKeeper.
func (s signedTokens) LoadTokens(ctx context.Context) ([]auth.Token, error) {
	if err := s.gate.Ready(ctx); err != nil {
		return nil, err
	}
	return s.TokenStore.LoadTokens(ctx)
}

// demands tells that the configuration has changed.
type demands chan struct{}

// Prepare implements config.Component.
func (d demands) Prepare(*config.Config) (func(), error) {
	return func() {
		select {
		case d <- struct{}{}:
		default:
		}
	}, nil
}

// follow calls changed whenever the file demands another kind of presence.
func (d demands) follow(ctx context.Context, live *config.Live, changed func(context.Context)) {
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
