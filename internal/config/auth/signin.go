package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"slices"
	"sync"
	"time"
)

// Lifetimes of a code, of an idle session, and of any session.
const (
	codeLife = time.Minute
	idleLife = 12 * time.Hour
	maxLife  = 7 * 24 * time.Hour
)

// Limits. If one is reached, the oldest element is dropped.
const (
	maxCodes    = 16
	maxSessions = 64
	maxCookies  = 8 // checked per request
)

// Rate limit of wrong codes and keys: a burst, then one per interval.
const (
	maxWrong      = 20
	wrongInterval = 3 * time.Second
)

// ErrSignedOut is the cause when the requests of an ended session are canceled.
var ErrSignedOut = errors.New("the session of the web UI has ended")

// WebUISignIns stores the sign-in codes and sessions of the web UI. A code is valid once, for one minute. Only hashes
// are stored: of codes in memory, of sessions also in a file (see NewAuthenticatorWithSessionFile). The zero value is
// empty and has no file. It is safe for concurrent use.
type WebUISignIns struct {
	mu       sync.Mutex      // guards the fields below
	codes    []*signInCode   // oldest first; a used one stays until it expires
	sessions []*webUISession // oldest first
	wrong    int             // recent wrong codes and keys
	since    time.Time       // start of the current interval
	file     sessionFile
}

type signInCode struct {
	hash [sha256.Size]byte
	id   string
	ends time.Time
	used bool
}

type webUISession struct {
	cookie, value        [sha256.Size]byte
	idleUntil, expiresAt time.Time // when it ends
	timer                *time.Timer
	requests             requestCancelSet // requests in flight
}

// requestCancelSet is the set of the cancel functions of the requests in flight.
type requestCancelSet map[*context.CancelCauseFunc]bool

// IssuedSignInCode is a sign-in code, returned once.
type IssuedSignInCode struct {
	Text    string // at least 128 bits
	ID      string // to check whether the code was used; not a credential
	Expires time.Time
}

// IssuedWebUISession is a session of a page, returned once. Both secrets are needed.
type IssuedWebUISession struct {
	Cookie  string    // for the browser, 256 bits; shared by its pages
	Value   string    // for the page, 256 bits
	Expires time.Time // end of the session if it is not used until then
}

// IssueSignInCode creates a code.
func (s *WebUISignIns) IssueSignInCode() IssuedSignInCode {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := IssuedSignInCode{Text: rand.Text(), ID: rand.Text(), Expires: time.Now().Add(codeLife)}
	s.codes = slices.DeleteFunc(s.codes, func(old *signInCode) bool { return isPast(old.ends) })
	if len(s.codes) == maxCodes {
		s.codes = s.codes[1:]
	}
	s.codes = append(s.codes, &signInCode{hash: sha256.Sum256([]byte(c.Text)), id: c.ID, ends: c.Expires})
	return c
}

// IsCodeUsed reports whether the code with this id was used. known is false if it does not
// exist or has expired.
func (s *WebUISignIns) IsCodeUsed(id string) (used, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.codes {
		if c.id == id && !isPast(c.ends) {
			return c.used, true
		}
	}
	return false, false
}

// RedeemCode uses up a code, and reports whether it was valid.
func (s *WebUISignIns) RedeemCode(text string) bool {
	hash := sha256.Sum256([]byte(text))
	s.mu.Lock()
	defer s.mu.Unlock()
	good := false
	for _, c := range s.codes {
		if subtle.ConstantTimeCompare(hash[:], c.hash[:]) == 1 && !c.used && !isPast(c.ends) {
			good, c.used = true, true
		}
	}
	return good
}

// CountWrongAttempt counts a wrong code or key.
func (s *WebUISignIns) CountWrongAttempt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decayWrongAttempts()
	s.wrong++
}

// HasTooManyWrongAttempts reports whether the rate limit for keys is exceeded. Codes are checked in any case: they
// cannot be guessed, and wrong attempts by others must not block a valid code.
func (s *WebUISignIns) HasTooManyWrongAttempts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decayWrongAttempts()
	return s.wrong >= maxWrong
}

// decayWrongAttempts reduces the count of wrong attempts over time.
func (s *WebUISignIns) decayWrongAttempts() {
	old := int(time.Since(s.since) / wrongInterval)
	if s.wrong = min(s.wrong, maxWrong) - old; s.wrong <= 0 {
		s.wrong, s.since = 0, time.Now()
		return
	}
	s.since = s.since.Add(time.Duration(old) * wrongInterval)
}

// OpenSession creates a session. A browser with the cookie of a running session keeps that cookie, because all its
// pages send the same one.
func (s *WebUISignIns) OpenSession(cookies []string) IssuedWebUISession {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	opened := IssuedWebUISession{Cookie: newSecret(), Value: newSecret(), Expires: now.Add(idleLife)}
	for i, hash := range hashCookies(cookies) {
		if slices.ContainsFunc(s.sessions, func(o *webUISession) bool { return o.cookie == hash && !o.isOver() }) {
			opened.Cookie = cookies[i]
		}
	}
	one := &webUISession{
		cookie: sha256.Sum256([]byte(opened.Cookie)), value: sha256.Sum256([]byte(opened.Value)),
		idleUntil: opened.Expires, expiresAt: now.Add(maxLife), requests: requestCancelSet{},
	}
	one.timer = time.AfterFunc(idleLife, func() { s.endIfExpired(one) })
	if len(s.sessions) == maxSessions {
		oldest := s.sessions[0]
		s.endSessions(func(o *webUISession) bool { return o == oldest })
	}
	s.sessions = append(s.sessions, one)
	s.saveSessions()
	return opened
}

// BindRequestToSession begins a request of the session with the page's value and one of the cookies of that name.
// done ends the request. The returned context also ends with the session. ok is false if there is no such session.
func (s *WebUISignIns) BindRequestToSession(ctx context.Context, value string, cookies []string) (in context.Context, done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.findSession(value, cookies)
	if one == nil {
		return ctx, func() {}, false
	}
	one.idleUntil = time.Now().Add(idleLife)
	s.saveSessionsIfDue()
	in, cancel := context.WithCancelCause(ctx)
	one.requests[&cancel] = true
	return in, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(one.requests, &cancel)
		cancel(nil)
	}, true
}

// SessionExpiry returns when the session ends if it is not used until then. ok is false if there is no such session.
func (s *WebUISignIns) SessionExpiry(value string, cookies []string) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.findSession(value, cookies)
	if one == nil {
		return time.Time{}, false
	}
	return one.endTime(), true
}

// SignOutBrowser ends all sessions of the browser with this session, and returns their number.
func (s *WebUISignIns) SignOutBrowser(value string, cookies []string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.findSession(value, cookies)
	return s.endSessions(func(o *webUISession) bool { return one != nil && o.cookie == one.cookie })
}

// SignOutEverywhere ends all sessions and codes, and returns the number of sessions.
func (s *WebUISignIns) SignOutEverywhere() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes = nil
	return s.endSessions(func(*webUISession) bool { return true })
}

// findSession returns the session with this value and one of these cookies, or nil. It compares all sessions, so that
// timing reveals nothing.
func (s *WebUISignIns) findSession(value string, cookies []string) (found *webUISession) {
	hash, sent := sha256.Sum256([]byte(value)), hashCookies(cookies)
	for _, one := range s.sessions {
		same := subtle.ConstantTimeCompare(hash[:], one.value[:])
		for _, sent := range sent {
			if same&subtle.ConstantTimeCompare(sent[:], one.cookie[:]) == 1 && !one.isOver() {
				found = one
			}
		}
	}
	return found
}

// endIfExpired ends a session that has expired, or sets the timer again.
func (s *WebUISignIns) endIfExpired(one *webUISession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !one.isOver() {
		one.timer.Reset(time.Until(one.endTime()))
		return
	}
	s.endSessions(func(o *webUISession) bool { return o == one })
}

// endSessions ends the sessions that match and cancels their requests.
func (s *WebUISignIns) endSessions(which func(*webUISession) bool) int {
	before := len(s.sessions)
	s.sessions = slices.DeleteFunc(s.sessions, func(one *webUISession) bool {
		if !which(one) {
			return false
		}
		one.timer.Stop()
		for cancel := range one.requests {
			(*cancel)(ErrSignedOut)
		}
		return true
	})
	if before > len(s.sessions) {
		s.saveSessions()
	}
	return before - len(s.sessions)
}

func (one *webUISession) endTime() time.Time {
	if one.expiresAt.Before(one.idleUntil) {
		return one.expiresAt
	}
	return one.idleUntil
}

func (one *webUISession) isOver() bool { return isPast(one.idleUntil) || isPast(one.expiresAt) }

// isPast reports whether a time has passed by any clock. The monotonic clock stops while the machine sleeps, and the
// wall clock can be changed.
func isPast(t time.Time) bool {
	now := time.Now()
	return !now.Before(t) || !now.Round(0).Before(t.Round(0))
}

// hashCookies returns the hashes of the cookies to check.
func hashCookies(cookies []string) (all [][sha256.Size]byte) {
	for _, cookie := range cookies[:min(len(cookies), maxCookies)] {
		all = append(all, sha256.Sum256([]byte(cookie)))
	}
	return all
}

// newSecret returns 256 random bits, encoded for a header.
func newSecret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}
