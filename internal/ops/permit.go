package ops

import (
	"context"
	"errors"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/presence"
)

// Permit has the person who makes a request permit what widens in the configuration.
func (g *Gateway) Permit(ctx context.Context) config.Permit {
	return func(claims ...config.Claim) error { return g.Presence.Require(ctx, Claims(claims)...) }
}

// Claims are claims of the configuration as a person signs them.
func Claims(all []config.Claim) (claims []presence.Claim) {
	for _, c := range all {
		claims = append(claims, presence.NewClaim(c.Words, c.Values...))
	}
	return claims
}

// errTried ends a change that was only tried.
var errTried = errors.New("this was only tried")

// widens returns what a person would have to permit of a change of the configuration, and
// makes none: for an operation that needs more permitted than that.
func widens(change func(config.Permit) error) (claims []presence.Claim, err error) {
	err = change(func(all ...config.Claim) error {
		claims = Claims(all)
		return errTried
	})
	if errors.Is(err, errTried) {
		err = nil
	}
	return claims, err
}

// Signed is a gate as the configuration asks it.
type Signed struct{ *presence.Gate }

// Confirmed reports whether a person has signed the claim, or nobody has to.
func (s Signed) Confirmed(c config.Claim) bool {
	return s.Gate.Confirmed(presence.NewClaim(c.Words, c.Values...))
}
