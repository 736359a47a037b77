package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"mcpproxy/internal/problem"
)

// Progress tells about the last login, if there was one.
func (a *Account) Progress() (Progress, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.login == nil {
		return Progress{}, false
	}
	return a.login.Progress, true
}

// Begin begins a login and returns where the person has to go, or returns the
// one that waits already. It ends at the callback; done is called then, if it
// went well.
func (a *Account) Begin(ctx context.Context, done func()) (Progress, error) {
	a.load(ctx)
	a.beginning.Lock()
	defer a.beginning.Unlock()
	if p, ok := a.Progress(); ok && p.Phase == Waiting && time.Now().Before(p.Expires) {
		return p, nil
	}
	l, listener, err := a.prepare(ctx)
	if err != nil {
		return Progress{}, problem.Newf(problem.UpstreamError, "The login to server '%s' cannot begin: %v.", a.name, err).
			WithHint("See docs/guide/oauth.md for what an authorization server has to offer and what can be configured.")
	}
	lctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), l.Expires)
	l.cancel = cancel
	a.mu.Lock()
	a.login = l
	a.mu.Unlock()
	begun := l.Progress
	if !a.keeper.begin() {
		cancel()
		_ = listener.Close()
		return Progress{}, errClosed
	}
	go func() {
		defer a.keeper.wg.Done()
		defer cancel()
		a.await(lctx, l, listener, done)
	}()
	return begun, nil
}

// abandon ends the login that waits for its person.
func (a *Account) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.login != nil && a.login.Phase == Waiting {
		a.login.cancel()
	}
}

// prepare does everything that comes before the person.
func (a *Account) prepare(ctx context.Context) (*login, net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTime)
	defer cancel()
	web, settings := a.web(), &a.target.Load().Settings
	a.mu.Lock()
	asked := a.asked
	a.mu.Unlock()
	if asked == (challenge{}) {
		asked = web.probe(ctx, a.resource)
	}
	found, err := web.discover(ctx, a.resource, asked, settings)
	if err != nil {
		return nil, nil, err
	}
	known := a.stored(ctx)
	listener, err := listen(settings, known)
	if err != nil {
		return nil, nil, err
	}
	l := &login{Progress: Progress{Phase: Waiting, Expires: time.Now().Add(loginTime)}, found: found,
		state: rand.Text(), verifier: rand.Text() + rand.Text(), redirect: "http://" + listener.Addr().String() + "/callback"}
	c, err := web.client(ctx, found, settings, known, l.redirect)
	if err != nil {
		_ = listener.Close()
		return nil, nil, err
	}
	l.issued = credential{Server: a.resource.String(), Resource: found.resource, Issuer: found.as.Issuer, Client: *c, TokenEndpoint: found.as.Token}
	if c.Kind == dynamic && a.cred.Load() == nil {
		// Kept before the person comes: a login that fails needs no other one.
		a.set(ctx, nil, &l.issued)
	}
	l.scopes = scopes(settings, asked, found, known)
	l.URL = l.authorizationURL()
	return l, listener, nil
}

// await serves the callback until the person has come back, and gets the token.
func (a *Account) await(ctx context.Context, l *login, listener net.Listener, done func()) {
	answers := make(chan url.Values, 1)
	server := &http.Server{
		Handler: l.callback(answers), ReadHeaderTimeout: callbackTime, ReadTimeout: callbackTime,
		WriteTimeout: callbackTime, MaxHeaderBytes: callbackHead,
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until it is closed
	}()
	err := errors.New("nobody logged in within " + loginTime.String())
	select {
	case answer := <-answers:
		err = a.finish(ctx, l, answer)
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("it was given up")
		}
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callbackTime)
	_ = server.Shutdown(sctx) // the page that says how it went is still written
	cancel()
	_ = server.Close()
	<-served
	a.mu.Lock()
	l.Phase = Done
	if err != nil {
		l.Phase, l.Err = Failed, err.Error()
	}
	a.mu.Unlock()
	if err != nil {
		a.keeper.opt.Logger.Warn("a login failed", "server", a.name, "error", err)
		return
	}
	a.keeper.opt.Logger.Info("logged in", "server", a.name, "issuer", l.found.as.Issuer)
	done()
}

// finish judges the answer and exchanges the code for a token.
func (a *Account) finish(ctx context.Context, l *login, q url.Values) error {
	if err := checkIssuer(q, &l.found.as); err != nil {
		return err
	}
	if code := q.Get("error"); code != "" {
		return &oauthError{clipCode(code)}
	}
	code := q.Get("code")
	if code == "" || len(code) > maxToken {
		return errors.New("the authorization server gave no code")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*requestTime)
	defer cancel()
	t, err := a.web().token(ctx, l.found.as.Token, &l.issued.Client, form{
		"grant_type": "authorization_code", "code": code, "redirect_uri": l.redirect,
		"code_verifier": l.verifier, "resource": l.found.resource,
	})
	if err != nil {
		if clientRefused(err) {
			a.set(ctx, a.cred.Load(), nil) // register anew the next time
		}
		return err
	}
	c := l.issued
	c.Scopes, c.RevocationEndpoint = l.scopes, l.found.as.Revocation
	c.take(t)
	a.mu.Lock()
	a.asked = challenge{}
	a.mu.Unlock()
	a.set(ctx, &c, &c)
	return nil
}
