package presence

import (
	"encoding/json"
	"errors"
)

// Asked is a statement that somebody asks a person to sign, as whoever shows it has to have
// it: with what it says.
type Asked struct {
	Statement
	Claims []Claim
	Anchor Anchor // that is to sign
}

// ReadAsked reads what the problem PRESENCE_REQUIRED has in its details. What is shown is
// what would be signed: other claims, or a statement of another anchor, are refused.
func ReadAsked(statement, claims, anchor json.RawMessage) (a Asked, err error) {
	if a.Statement, err = ParseStatement(statement); err != nil {
		return a, err
	}
	if a.Anchor, err = ParseAnchor(anchor); err != nil {
		return a, err
	}
	e := Evidence{Signed: Signed{Statement: a.Statement}}
	if err := json.Unmarshal(claims, &e.Claims); err != nil {
		return a, errors.New("the claims cannot be read")
	}
	a.Claims = e.Claims
	if err := e.check(); err != nil {
		return a, err
	}
	if a.Anchor.Fingerprint() != a.Statement.Anchor {
		return a, errors.New("the statement is of another anchor")
	}
	return a, nil
}
