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

// How long what signs a page in is good: a code, a session that is not used, and
// any session.
const (
	codeLife  = time.Minute
	idleLife  = 12 * time.Hour
	wholeLife = 7 * 24 * time.Hour
)

// How many there are at most. Of more the oldest goes.
const (
	maxCodes    = 16
	maxSessions = 64
	maxCookies  = 8 // of one request that are looked at
)

// How many wrong codes and keys are looked at: so many at once, then one in this
// time.
const (
	maxWrong  = 20
	wrongTime = 3 * time.Second
)

// ErrSignedOut is why the requests of a session end that has ended.
var ErrSignedOut = errors.New("the session of the web UI has ended")

// SignIns are the ways into the web UI: codes that are good once and for a
// minute, and the sessions of pages. It keeps hashes: of codes in memory only, of
// sessions in a file, too, see NewKept. The zero value has none of them, and keeps no
// file. Its methods are safe for concurrent use.
type SignIns struct {
	mu       sync.Mutex // guards all that follows
	codes    []*code    // the oldest first; a used one stays until its minute is over
	sessions []*session // the oldest first
	wrong    int        // what was wrong lately
	since    time.Time  // from when on less of it counts
	keep     keeper
}

type code struct {
	hash [sha256.Size]byte
	id   string
	ends time.Time
	used bool
}

type session struct {
	cookie, value [sha256.Size]byte
	idle, whole   time.Time // when it ends
	timer         *time.Timer
	requests      requests // that run
}

type requests map[*context.CancelCauseFunc]bool

// Code is a sign-in code, as it is told once.
type Code struct {
	Text    string // 128 bits and more
	ID      string // with which it can be asked whether it was used; it opens nothing
	Expires time.Time
}

// Session is a session of a page, as it is told once. Only both secrets together
// are good for anything.
type Session struct {
	Cookie  string    // for the browser, 256 bits; it is that of its other pages, too
	Value   string    // for the page, 256 bits
	Expires time.Time // when it ends unless it is used
}

// NewCode makes a code.
func (s *SignIns) NewCode() Code {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Code{Text: rand.Text(), ID: rand.Text(), Expires: time.Now().Add(codeLife)}
	s.codes = slices.DeleteFunc(s.codes, func(old *code) bool { return past(old.ends) })
	if len(s.codes) == maxCodes {
		s.codes = s.codes[1:]
	}
	s.codes = append(s.codes, &code{hash: sha256.Sum256([]byte(c.Text)), id: c.ID, ends: c.Expires})
	return c
}

// Used reports whether the code with this id was used. known is false when there
// is none, or none any more.
func (s *SignIns) Used(id string) (used, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.codes {
		if c.id == id && !past(c.ends) {
			return c.used, true
		}
	}
	return false, false
}

// Redeem uses a code up, and reports whether it was good.
func (s *SignIns) Redeem(text string) bool {
	hash := sha256.Sum256([]byte(text))
	s.mu.Lock()
	defer s.mu.Unlock()
	good := false
	for _, c := range s.codes {
		if subtle.ConstantTimeCompare(hash[:], c.hash[:]) == 1 && !c.used && !past(c.ends) {
			good, c.used = true, true
		}
	}
	return good
}

// Wrong counts a wrong code or key.
func (s *SignIns) Wrong() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgive()
	s.wrong++
}

// TooManyWrong reports whether so much was wrong lately that keys are not looked
// at for now. Codes always are: nobody guesses one, and who has a good one must
// not be kept out by who has none.
func (s *SignIns) TooManyWrong() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgive()
	return s.wrong >= maxWrong
}

// forgive takes back what has become old of what was wrong.
func (s *SignIns) forgive() {
	old := int(time.Since(s.since) / wrongTime)
	if s.wrong = min(s.wrong, maxWrong) - old; s.wrong <= 0 {
		s.wrong, s.since = 0, time.Now()
		return
	}
	s.since = s.since.Add(time.Duration(old) * wrongTime)
}

// Open makes a session. A browser that presents the cookie of one that lasts
// keeps it: all its pages send the same.
func (s *SignIns) Open(cookies []string) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	opened := Session{Cookie: secret(), Value: secret(), Expires: now.Add(idleLife)}
	for i, hash := range hashes(cookies) {
		if slices.ContainsFunc(s.sessions, func(o *session) bool { return o.cookie == hash && !o.over() }) {
			opened.Cookie = cookies[i]
		}
	}
	one := &session{
		cookie: sha256.Sum256([]byte(opened.Cookie)), value: sha256.Sum256([]byte(opened.Value)),
		idle: opened.Expires, whole: now.Add(wholeLife), requests: requests{},
	}
	one.timer = time.AfterFunc(idleLife, func() { s.tick(one) })
	if len(s.sessions) == maxSessions {
		oldest := s.sessions[0]
		s.end(func(o *session) bool { return o == oldest })
	}
	s.sessions = append(s.sessions, one)
	s.save()
	return opened
}

// Enter begins a request with what it presents of a session: the page's value,
// and the cookies of that name, among which those of others may be. done ends the
// request; the context ends with the session, too. ok is false when there is no
// such session, and then nothing has begun.
func (s *SignIns) Enter(ctx context.Context, value string, cookies []string) (in context.Context, done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.find(value, cookies)
	if one == nil {
		return ctx, func() {}, false
	}
	one.idle = time.Now().Add(idleLife)
	s.used()
	in, cancel := context.WithCancelCause(ctx)
	one.requests[&cancel] = true
	return in, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(one.requests, &cancel)
		cancel(nil)
	}, true
}

// Expires returns when the session ends unless it is used; ok is false when there
// is none.
func (s *SignIns) Expires(value string, cookies []string) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.find(value, cookies)
	if one == nil {
		return time.Time{}, false
	}
	return one.ends(), true
}

// SignOut ends the sessions of the browser that has this one, and returns how many
// they were.
func (s *SignIns) SignOut(value string, cookies []string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.find(value, cookies)
	return s.end(func(o *session) bool { return one != nil && o.cookie == one.cookie })
}

// SignOutEverywhere ends all sessions and codes, and returns how many sessions
// they were.
func (s *SignIns) SignOutEverywhere() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes = nil
	return s.end(func(*session) bool { return true })
}

// find returns the session with this value and one of these cookies; nil without
// one. All are compared, so that the time tells nothing.
func (s *SignIns) find(value string, cookies []string) (found *session) {
	hash, sent := sha256.Sum256([]byte(value)), hashes(cookies)
	for _, one := range s.sessions {
		same := subtle.ConstantTimeCompare(hash[:], one.value[:])
		for _, sent := range sent {
			if same&subtle.ConstantTimeCompare(sent[:], one.cookie[:]) == 1 && !one.over() {
				found = one
			}
		}
	}
	return found
}

// tick ends a session whose time has come, or looks again when it will.
func (s *SignIns) tick(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !one.over() {
		one.timer.Reset(time.Until(one.ends()))
		return
	}
	s.end(func(o *session) bool { return o == one })
}

// end ends sessions and the requests that run for them.
func (s *SignIns) end(which func(*session) bool) int {
	before := len(s.sessions)
	s.sessions = slices.DeleteFunc(s.sessions, func(one *session) bool {
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
		s.save()
	}
	return before - len(s.sessions)
}

func (one *session) ends() time.Time {
	if one.whole.Before(one.idle) {
		return one.whole
	}
	return one.idle
}

func (one *session) over() bool { return past(one.idle) || past(one.whole) }

// past reports whether a time is over by any clock: the one that runs evenly
// stands still while the machine sleeps, the other one can be set.
func past(t time.Time) bool {
	now := time.Now()
	return !now.Before(t) || !now.Round(0).Before(t.Round(0))
}

// hashes are those of the cookies that are looked at.
func hashes(cookies []string) (all [][sha256.Size]byte) {
	for _, cookie := range cookies[:min(len(cookies), maxCookies)] {
		all = append(all, sha256.Sum256([]byte(cookie)))
	}
	return all
}

// secret returns 256 random bits as text for a header.
func secret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // it never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}
