package ops

import (
	"context"
	"errors"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/presence"
)

// configConfirmFunc returns a function that requires proof of presence for configuration changes that grant more
// access.
func (g *Gateway) configConfirmFunc(ctx context.Context) config.ConfirmFunc {
	return func(claims ...config.Claim) error { return g.Presence.RequireSigned(ctx, ToPresenceClaims(claims)...) }
}

// ToPresenceClaims converts claims of the configuration to claims of package presence.
func ToPresenceClaims(all []config.Claim) (claims []presence.Claim) {
	for _, c := range all {
		claims = append(claims, presence.NewClaim(c.Words, c.Values...))
	}
	return claims
}

// errDryRun aborts a change after its claims are known.
var errDryRun = errors.New("this was only tried")

// requiredClaims returns the claims that a configuration change requires, without making it.
func requiredClaims(change func(config.ConfirmFunc) error) (claims []presence.Claim, err error) {
	err = change(func(all ...config.Claim) error {
		claims = ToPresenceClaims(all)
		return errDryRun
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return claims, err
}

// ConfigClaimChecker adapts presence.Gate for package config.
type ConfigClaimChecker struct{ *presence.Gate }

// IsConfirmed reports whether a user has signed the claim or presence is off.
func (s ConfigClaimChecker) IsConfirmed(c config.Claim) bool {
	return s.Gate.IsConfirmed(presence.NewClaim(c.Words, c.Values...))
}
