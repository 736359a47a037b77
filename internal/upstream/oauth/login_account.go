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

// Progress returns the progress of the last login, if there was one.
func (a *Account) Progress() (LoginProgress, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.login == nil {
		return LoginProgress{}, false
	}
	return a.login.LoginProgress, true
}

// BeginLogin starts a login and returns its URL, or that of the login in progress. The login ends at the callback. On
// success it calls done.
func (a *Account) BeginLogin(ctx context.Context, done func()) (LoginProgress, error) {
	a.loadOnce(ctx)
	a.loginMu.Lock()
	defer a.loginMu.Unlock()
	if p, ok := a.Progress(); ok && p.Phase == Waiting && time.Now().Before(p.Expires) {
		return p, nil
	}
	l, listener, err := a.prepareLogin(ctx)
	if err != nil {
		return LoginProgress{}, problem.Newf(problem.UpstreamError, "The login to server '%s' cannot begin: %v.", a.name, err).
			WithHint("See docs/guide/oauth.md for the requirements and the configuration.")
	}
	lctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), l.Expires)
	l.cancel = cancel
	a.mu.Lock()
	a.login = l
	a.mu.Unlock()
	begun := l.LoginProgress
	if !a.accounts.addWorkUnlessClosed() {
		cancel()
		_ = listener.Close()
		return LoginProgress{}, errClosed
	}
	go func() {
		defer a.accounts.wg.Done()
		defer cancel()
		a.serveCallback(lctx, l, listener, done)
	}()
	return begun, nil
}

// cancelLogin cancels a login in progress.
func (a *Account) cancelLogin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.login != nil && a.login.Phase == Waiting {
		a.login.cancel()
	}
}

// prepareLogin does everything before the user acts.
func (a *Account) prepareLogin(ctx context.Context) (*pendingLogin, net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	web, settings := a.newWebClient(), &a.target.Load().Settings
	a.mu.Lock()
	asked := a.lastChallenge
	a.mu.Unlock()
	if asked == (bearerChallenge{}) {
		asked = web.probeChallenge(ctx, a.resource)
	}
	found, err := web.discoverAuthServer(ctx, a.resource, asked, settings)
	if err != nil {
		return nil, nil, err
	}
	known := a.loadStored(ctx)
	listener, err := listenCallback(settings, known)
	if err != nil {
		return nil, nil, err
	}
	l := &pendingLogin{LoginProgress: LoginProgress{Phase: Waiting, Expires: time.Now().Add(loginTimeout)}, discovery: found,
		state: rand.Text(), verifier: rand.Text() + rand.Text(), redirect: "http://" + listener.Addr().String() + "/callback"}
	c, err := web.chooseClient(ctx, found, settings, known, l.redirect)
	if err != nil {
		_ = listener.Close()
		return nil, nil, err
	}
	l.issued = credential{Server: a.resource.String(), Resource: found.resource, Issuer: found.as.Issuer, Client: *c, TokenEndpoint: found.as.Token}
	if c.Kind == dynamic && a.cred.Load() == nil {
		// Stored before the user acts: a failed login can reuse the registration.
		a.setCredential(ctx, nil, &l.issued)
	}
	l.scopes = requestedScopes(settings, asked, found, known)
	l.URL = l.authorizationURL()
	return l, listener, nil
}

// serveCallback serves the callback until the user returns, and gets the token.
func (a *Account) serveCallback(ctx context.Context, l *pendingLogin, listener net.Listener, done func()) {
	answers := make(chan url.Values, 1)
	server := &http.Server{
		Handler: l.newCallbackHandler(answers), ReadHeaderTimeout: callbackTimeout, ReadTimeout: callbackTimeout,
		WriteTimeout: callbackTimeout, MaxHeaderBytes: maxCallbackHeader,
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until it is closed
	}()
	err := errors.New("no login within " + loginTimeout.String())
	select {
	case answer := <-answers:
		err = a.exchangeCode(ctx, l, answer)
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("it was cancelled")
		}
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callbackTimeout)
	_ = server.Shutdown(sctx) // lets the result page be written
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
		a.accounts.opt.Logger.Warn("a login failed", "server", a.name, "error", err)
		return
	}
	a.accounts.opt.Logger.Info("logged in", "server", a.name, "issuer", l.discovery.as.Issuer)
	done()
}

// exchangeCode checks the response and exchanges the code for a token.
func (a *Account) exchangeCode(ctx context.Context, l *pendingLogin, q url.Values) error {
	if err := checkResponseIssuer(q, &l.discovery.as); err != nil {
		return err
	}
	if code := q.Get("error"); code != "" {
		return &oauthError{sanitizeErrorCode(code)}
	}
	code := q.Get("code")
	if code == "" || len(code) > maxToken {
		return errors.New("the authorization server gave no code")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	t, err := a.newWebClient().requestToken(ctx, l.discovery.as.Token, &l.issued.Client, formParams{
		"grant_type": "authorization_code", "code": code, "redirect_uri": l.redirect,
		"code_verifier": l.verifier, "resource": l.discovery.resource,
	})
	if err != nil {
		if isUnknownClient(err) {
			a.setCredential(ctx, a.cred.Load(), nil) // register again the next time
		}
		return err
	}
	c := l.issued
	c.Scopes, c.RevocationEndpoint = l.scopes, l.discovery.as.Revocation
	c.applyTokenResponse(t)
	a.mu.Lock()
	a.lastChallenge = bearerChallenge{}
	a.mu.Unlock()
	a.setCredential(ctx, &c, &c)
	return nil
}
