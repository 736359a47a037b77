package presence

import (
	"encoding/json"
	"errors"
)

// SignRequest is a request to sign a statement, with its claims in full.
type SignRequest struct {
	Statement
	Claims []Claim
	Anchor Anchor // anchor that must sign
}

// ParseSignRequest parses the details of the problem PRESENCE_REQUIRED. It rejects claims or an anchor
// that do not match the statement, so that a user signs exactly the content shown.
func ParseSignRequest(statement, claims, anchor json.RawMessage) (a SignRequest, err error) {
	if a.Statement, err = ParseStatement(statement); err != nil {
		return a, err
	}
	if a.Anchor, err = ParseAnchor(anchor); err != nil {
		return a, err
	}
	e := Evidence{SignedStatement: SignedStatement{Statement: a.Statement}}
	if err := json.Unmarshal(claims, &e.Claims); err != nil {
		return a, errors.New("the claims cannot be read")
	}
	a.Claims = e.Claims
	if err := e.checkClaims(); err != nil {
		return a, err
	}
	if a.Anchor.Fingerprint() != a.Statement.Anchor {
		return a, errors.New("the statement belongs to another anchor")
	}
	return a, nil
}
