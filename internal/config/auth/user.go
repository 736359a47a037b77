package auth

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	"mcpproxy/internal/problem"
)

// Role is what a user may do apart from calling tools. The zero value is no user.
type Role uint8

// The roles. Each one includes the rights of those before it.
const (
	NoRole       Role = iota
	RoleUser          // sees its own records, and answers questions about its own calls
	RoleReviewer      // approves definitions and the calls of all users
	RoleAdmin
)

var roleNames = [...]string{RoleUser: "user", RoleReviewer: "reviewer", RoleAdmin: "admin"}

// RoleNames returns the names of the roles.
func RoleNames() []string { return append([]string{}, roleNames[RoleUser:]...) }

// ParseRole parses the exact name of a role.
func ParseRole(name string) (Role, bool) {
	for r := RoleUser; r <= RoleAdmin; r++ {
		if roleNames[r] == name {
			return r, true
		}
	}
	return NoRole, false
}

// UserVerifier identifies users by the access tokens of their provider.
type UserVerifier interface {
	// VerifyUser returns the access of the user to whom a token belongs, at the address with this path. It returns
	// handled false if the text is not for it, so that it is an invalid key or token. The error is a *TokenRefusal or
	// ErrProviderAway.
	VerifyUser(ctx context.Context, path, text string) (access *LoadedToken, handled bool, err error)
	// Challenge returns the WWW-Authenticate value for a request to this path; "" if users cannot sign in there.
	Challenge(path string, refusal *TokenRefusal) string
}

// TokenRefusal is the reason why an access token was refused.
type TokenRefusal struct {
	Reason string // for the user; it contains nothing of the token
	// Forbidden is set if the token is valid, but gives no access.
	Forbidden bool
	// Scope is the scope that the token lacks; "" if another token of the user would not help.
	Scope string
}

// Error implements error.
func (r *TokenRefusal) Error() string { return r.Reason }

// UserAccess is what an access token and the rules give to a user.
type UserAccess struct {
	ID      string // identifies the user: derived from issuer and subject
	Name    string // unique among the users
	Role    Role
	Profile string           // profile that the user is bound to, "" if there is none
	Lanes   []string         // nil: all
	Granted OperationLaneSet // lanes that the scopes of the token allow
	Expires time.Time
	Usage   *Usage
}

// NewUserToken returns the access of a user in the form of a token, so that all limits of tokens apply to it. It ends
// when End is called, or when it expires.
func NewUserToken(u UserAccess) *LoadedToken {
	t := Token{ID: u.ID, Name: u.Name, Profile: u.Profile, Lanes: u.Lanes, Expires: u.Expires}
	h := &LoadedToken{Token: t, rule: t.RuleWithoutProfile(), ended: make(chan struct{}), user: &u}
	h.timer = time.AfterFunc(time.Until(u.Expires), h.End)
	return h
}

// User returns the access of the user; nil for an agent token.
func (h *LoadedToken) User() *UserAccess {
	if h == nil {
		return nil
	}
	return h.user
}

// End ends the access of a user.
func (h *LoadedToken) End() {
	h.once.Do(func() {
		h.timer.Stop()
		close(h.ended)
	})
}

// IsWatched reports whether a stream or a session waits for the end of the token.
func (h *LoadedToken) IsWatched() bool { return h.watched.Load() }

// UserLimits limit the calls of a user. A zero does not limit.
type UserLimits struct {
	CallsPerMinute, CallsInFlight int
	ResultBytesPerDay             int64
}

// Usage counts the calls of a user against its limits. It is safe for concurrent use; nil does not limit.
type Usage struct {
	mu       sync.Mutex // guards the following fields
	limits   UserLimits
	left     float64 // calls that may begin now
	at       time.Time
	inFlight int
	day      time.Time
	bytes    int64
}

// NewUsage returns a Usage without calls.
func NewUsage(l UserLimits) *Usage { return &Usage{limits: l, left: float64(l.CallsPerMinute)} }

// SetLimits changes the limits, and keeps the counts.
func (u *Usage) SetLimits(l UserLimits) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.limits.CallsPerMinute != l.CallsPerMinute {
		u.left = float64(l.CallsPerMinute)
	}
	u.limits = l
}

// inFlightRetry is the proposed wait if too many calls run.
const inFlightRetry = time.Second

// BeginCall counts a call that begins. If a limit is reached, it returns the limit in words, and how long to wait.
// Otherwise the caller must call EndCall.
func (u *Usage) BeginCall(now time.Time) (limit string, wait time.Duration) {
	if u == nil {
		return "", 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	today := now.UTC().Truncate(24 * time.Hour)
	if !u.day.Equal(today) {
		u.day, u.bytes = today, 0
	}
	perSecond := float64(u.limits.CallsPerMinute) / 60
	if u.at.IsZero() || now.Before(u.at) {
		u.at = now
	}
	u.left = min(float64(u.limits.CallsPerMinute), u.left+perSecond*now.Sub(u.at).Seconds())
	u.at = now
	switch {
	case u.limits.ResultBytesPerDay > 0 && u.bytes >= u.limits.ResultBytesPerDay:
		return "the size of results per day", today.Add(24 * time.Hour).Sub(now)
	case u.limits.CallsInFlight > 0 && u.inFlight >= u.limits.CallsInFlight:
		return "the number of calls at a time", inFlightRetry
	case u.limits.CallsPerMinute > 0 && u.left < 1:
		return "the number of calls per minute", time.Duration((1 - u.left) / perSecond * float64(time.Second))
	}
	u.left--
	u.inFlight++
	return "", 0
}

// EndCall counts the end of a call, and the size of its result.
func (u *Usage) EndCall(bytes int) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inFlight--
	u.bytes += int64(bytes)
}

// RateLimitProblem returns the problem of a call that a limit refused.
func RateLimitProblem(limit string, wait time.Duration) *problem.Problem {
	seconds := int(math.Ceil(wait.Seconds()))
	return problem.Newf(problem.RateLimited, "A limit of this user is reached: %s", limit).
		WithHint("Wait "+strconv.Itoa(seconds)+" seconds, then call again with the same arguments.").With("retry_after", seconds)
}

// IsIdle reports whether no calls run, and none has begun since a time.
func (u *Usage) IsIdle(since time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.inFlight == 0 && u.at.Before(since)
}

// ScopeOf returns the OAuth scope that allows the calls of a lane.
func ScopeOf(l OperationLane) string { return "mcp:" + words[l] }
