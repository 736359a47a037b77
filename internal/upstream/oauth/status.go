package oauth

import (
	"context"
	"errors"
	"time"
)

// LoginState says whether the login to a server works.
type LoginState string

// The states of a login.
const (
	LoginWorks    LoginState = ""         // it works, or the server requires none
	LoginNeeded   LoginState = "needed"   // the user must log in
	LoginRetrying LoginState = "retrying" // the authorization server fails; MCPProxy retries the renewal
)

// LoginStatus is the state of the login to a server and its reason.
type LoginStatus struct {
	State  LoginState
	Reason string // fixed text, without text of any server
	Detail string // the error, for users; without secrets
}

// The reasons.
const (
	reasonNone      = "no one has logged in to it"
	reasonExpired   = "the login has expired, and the authorization server issued no refresh token"
	reasonEnded     = "the authorization server has ended the login"
	reasonClient    = "the authorization server no longer knows this client; the next login registers it again"
	reasonConfig    = "the authorization server does not accept the configured client: check oauth.client_id and oauth.client_secret"
	reasonScope     = "the server requires more permissions than the login has"
	reasonRejected  = "the server rejects a token that was just issued: check the account, oauth.scopes and the system clock"
	reasonUnrenewed = "the authorization server is not available, so the login cannot be renewed; MCPProxy tries again with each call"
)

// LoginEvent is a change of a login.
type LoginEvent string

// The events.
const (
	EventChanged LoginEvent = ""       // the status has changed
	EventNeeded  LoginEvent = "needed" // the user must log in
	EventFailed  LoginEvent = "failed" // a login of the user has failed
)

// minEventInterval is the minimum time between two EventNeeded of a server that the login state itself does not cause.
const minEventInterval = 10 * time.Minute

// Status returns the status of the login.
func (a *Account) Status() LoginStatus {
	if s := a.status.Load(); s != nil {
		return *s
	}
	return LoginStatus{}
}

// NeedsLogin reports whether only a login of the user helps.
func (a *Account) NeedsLogin() bool { return a.Status().State == LoginNeeded }

// Status returns the status of the login to a server.
func (k *Accounts) Status(server string) LoginStatus {
	if a := k.Account(server); a != nil {
		return a.Status()
	}
	return LoginStatus{}
}

// NeedsLogin reports whether the server requires a login.
func (k *Accounts) NeedsLogin(server string) bool { return k.Status(server).State == LoginNeeded }

// InProgress reports whether the user is logging in to the server.
func (k *Accounts) InProgress(server string) bool {
	a := k.Account(server)
	if a == nil {
		return false
	}
	p, ok := a.Progress()
	return ok && p.Phase == Waiting && time.Now().Before(p.Expires)
}

// RequestLogin asks the user to log in to a server, on behalf of an agent. It has no effect if the login works, or if
// the user was asked a moment ago.
func (k *Accounts) RequestLogin(server string) {
	a := k.Account(server)
	if a == nil || !a.NeedsLogin() {
		return
	}
	a.mu.Lock()
	again := time.Since(a.neededAt) >= minEventInterval
	if again {
		a.neededAt = time.Now()
	}
	a.mu.Unlock()
	if again {
		a.notify(EventNeeded)
	}
}

func (a *Account) notify(e LoginEvent) {
	if f := a.accounts.opt.Notify; f != nil {
		f(a.name, e)
	}
}

// setStatus sets the status that follows from a request with the credential c. It has no effect if there is another
// credential by now.
func (a *Account) setStatus(c *credential, s LoginStatus) {
	a.mu.Lock()
	before := a.Status()
	if a.cred.Load() != c || before == s {
		a.mu.Unlock()
		return
	}
	needed := s.State == LoginNeeded && before.State != LoginNeeded
	if needed {
		a.neededAt = time.Now()
	}
	if s.State == LoginWorks {
		a.status.Store(nil)
	} else {
		a.status.Store(&s)
	}
	a.wakeWaitersLocked()
	a.mu.Unlock()
	if needed {
		a.accounts.opt.Logger.Info("a server requires a login", "server", a.name, "reason", s.Reason)
		a.notify(EventNeeded)
		return
	}
	a.notify(EventChanged)
}

// wakeWaitersLocked wakes the calls that wait for the login. The caller holds mu.
func (a *Account) wakeWaitersLocked() {
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *Account) changedChan() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

var errNoLogin = errors.New("the server supports no login")

// Pauses between renewals for calls that wait.
const (
	minRenewalPause = time.Second
	maxRenewalPause = 10 * time.Second
)

// AwaitLogin returns when the login to a server works: after a login of the user, or after a renewal, which it tries
// again and again. Its error is that of ctx, or that the server supports no login.
func (k *Accounts) AwaitLogin(ctx context.Context, server string) error {
	for pause := minRenewalPause; ; {
		a := k.Account(server)
		if a == nil {
			return errNoLogin
		}
		changed := a.changedChan()
		var due <-chan time.Time
		switch a.Status().State {
		case LoginWorks:
			return nil
		case LoginRetrying:
			due = time.After(pause)
			pause = min(2*pause, maxRenewalPause)
		}
		select {
		case <-changed:
		case <-due:
			if c := a.cred.Load(); c != nil {
				_, _ = a.renewOnce(ctx, c) // the status has the result
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
