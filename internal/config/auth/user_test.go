package auth

import (
	"testing"
	"time"
)

func TestUserLimits(t *testing.T) {
	at := time.Date(2026, 1, 15, 23, 59, 0, 0, time.UTC)
	u := NewUsage(UserLimits{CallsPerMinute: 2, CallsInFlight: 1, ResultBytesPerDay: 100})
	step := func(after time.Duration, want string, wait time.Duration) {
		t.Helper()
		at = at.Add(after)
		if limit, left := u.BeginCall(at); limit != want || left != wait {
			t.Errorf("at %s: %q %s, want %q %s", at, limit, left, want, wait)
		}
	}
	step(0, "", 0)
	step(0, "the number of calls at a time", time.Second)
	u.EndCall(50)
	step(0, "", 0)
	u.EndCall(49)
	step(0, "the number of calls per minute", 30*time.Second)
	step(30*time.Second, "", 0)
	u.EndCall(1)
	step(20*time.Second, "the size of results per day", 10*time.Second)
	step(10*time.Second, "", 0) // the next day
	u.EndCall(0)
}

// TestUsersAreNoTokens: a user has no rights of an agent token with the same name.
func TestUsersAreNoTokens(t *testing.T) {
	user, token := Actor{Kind: Agent, Name: "ci", ID: "1", Role: RoleUser}, Actor{Kind: Agent, Name: "ci", ID: "1"}
	if user.String() != "user:ci" || token.String() != "agent:ci" || user.Principal() == token.Principal() || user.TokenName() != "" || token.TokenName() != "ci" {
		t.Errorf("%s %s %s %s", user, token, user.Principal(), token.Principal())
	}
	asAgent := Caller{Actor: user, Source: MCP}
	if asAgent.IsUser() || asAgent.Scope().AllowsServer("s") || asAgent.Scope().Lanes() != 0 {
		t.Error("a user without bounds has access")
	}
	if admin := (Actor{Kind: Agent, Name: "ci", ID: "1", Role: RoleAdmin}); (Caller{Actor: admin, Source: MCP}).IsUser() {
		t.Error("an MCP client of an admin is the admin")
	}
	renamed := user
	if renamed.Name = "cd"; renamed.Principal() != user.Principal() {
		t.Error("a new name loses what the user owns")
	}
}
