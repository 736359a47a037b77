package oauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

// BeginLogin starts a login and returns its URL, or that of the login in progress. The login ends at the callback. If
// headless is set, it uses a device code if the authorization server supports that. On success it calls done, and
// reports Done after that.
func (a *Account) BeginLogin(ctx context.Context, headless bool, done func(context.Context)) (LoginProgress, error) {
	a.loadOnce(ctx)
	a.loginMu.Lock()
	defer a.loginMu.Unlock()
	if l := a.loginInProgress(); l != nil {
		if !headless || l.device != nil || l.discovery.as.DeviceAuthorization == "" {
			p, _ := a.Progress()
			return p, nil
		}
		l.cancel() // the user cannot use this one
		<-l.ended
	}
	l, listener, err := a.prepareLogin(ctx, headless)
	if err != nil {
		a.notify(EventFailed)
		return LoginProgress{}, problem.Newf(problem.UpstreamError, "The login to server '%s' cannot begin: %v.", a.name, err).
			WithHint("See docs/guide/oauth.md for the requirements and the configuration. If the authorization server is down, try again later.")
	}
	lctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), l.Expires)
	l.cancel = cancel
	begun := l.LoginProgress
	if !a.accounts.addWorkUnlessClosed() {
		cancel()
		closeCallback(listener)
		return LoginProgress{}, errClosed
	}
	a.mu.Lock()
	a.login = l
	a.wakeWaitersLocked()
	a.mu.Unlock()
	a.notify(EventChanged)
	go func() {
		defer a.accounts.wg.Done()
		defer close(l.ended)
		defer cancel()
		a.runLogin(lctx, l, listener, done)
	}()
	return begun, nil
}

// loginInProgress returns the login that waits for the user, or nil.
func (a *Account) loginInProgress() *pendingLogin {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.login == nil || a.login.Phase != Waiting || !time.Now().Before(a.login.Expires) {
		return nil
	}
	return a.login
}

// CompleteLogin completes the login in progress with the URL to which the authorization server has redirected the
// user's browser, which could not open it.
func (a *Account) CompleteLogin(pasted string) error {
	l := a.loginInProgress()
	switch {
	case l == nil:
		return problem.Newf(problem.Conflict, "No login to server '%s' is in progress.", a.name).WithHint("Start one with `mcpproxy login " + a.name + "`.")
	case len(pasted) > maxCallbackHeader:
		return problem.Newf(problem.InvalidRequest, "The URL is longer than %d bytes.", maxCallbackHeader)
	}
	pasted = strings.TrimSpace(pasted)
	if !strings.Contains(pasted, "://") { // browsers hide the scheme
		scheme, _, _ := strings.Cut(l.redirect, "://")
		pasted = scheme + "://" + pasted
	}
	u, err := url.Parse(pasted)
	if err != nil || u.Scheme+"://"+u.Host+u.Path != l.redirect || !l.matchesResponse(u.Query()) {
		return problem.Newf(problem.InvalidRequest, "The URL is not the end of the login to server '%s' that is in progress.", a.name).
			WithHint("Paste the whole address that your browser shows after the login. It begins with " + l.redirect + ".")
	}
	select {
	case l.answers <- u.Query():
	default: // it has been answered
	}
	return nil
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
func (a *Account) prepareLogin(ctx context.Context, headless bool) (*pendingLogin, net.Listener, error) {
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
	redirect, listener, err := a.openCallback(settings, known)
	if err != nil {
		return nil, nil, err
	}
	l := &pendingLogin{LoginProgress: LoginProgress{Phase: Waiting, Expires: time.Now().Add(loginTimeout), Issuer: found.as.Issuer}, discovery: found,
		state: rand.Text(), verifier: rand.Text() + rand.Text(), redirect: redirect,
		answers: make(chan url.Values, 1), ended: make(chan struct{})}
	if known != nil && known.Issuer != found.as.Issuer {
		l.Before = known.Issuer
	}
	l.scopes = requestedScopes(settings, asked, found, known)
	if err := a.offerLogin(ctx, web, l, known, headless); err != nil {
		closeCallback(listener)
		return nil, nil, err
	}
	return l, listener, nil
}

// offerLogin chooses the client and sets what the user needs: a URL, and possibly a code. If the authorization server
// no longer knows a client that was registered before, it registers a new one.
func (a *Account) offerLogin(ctx context.Context, web *webClient, l *pendingLogin, known *credential, headless bool) error {
	d := l.discovery
	for {
		c, err := web.chooseClient(ctx, d, &a.target.Load().Settings, known, l.redirect)
		if err != nil {
			return err
		}
		l.issued = credential{Server: a.resource.String(), Resource: d.resource, Issuer: d.as.Issuer, Client: *c, TokenEndpoint: d.as.Token}
		reused := known != nil && *c == known.Client && c.Kind == dynamic
		if c.Kind == dynamic && a.cred.Load() == nil {
			// Stored before the user acts: a failed login can reuse the registration.
			a.setCredential(ctx, nil, &l.issued)
		}
		if headless && d.as.DeviceAuthorization != "" {
			l.device, err = web.authorizeDevice(ctx, l)
			if err == nil {
				l.URL, l.Code = cmp.Or(l.device.Complete, l.device.URI), l.device.UserCode
				if lives := parseLifetime(l.device.Lifetime); lives > 0 {
					l.Expires = time.Now().Add(min(lives, loginTimeout))
				}
				return nil
			}
			if !reused || !isUnknownClient(err) {
				return err
			}
		} else if l.URL = l.authorizationURL(); !reused || !web.rejectsClient(ctx, l.URL) {
			return nil
		}
		known = nil // register again
	}
}

// openCallback returns the address of the callback, and a listener for it unless the daemon serves it.
func (a *Account) openCallback(s *Settings, known *credential) (redirect string, l net.Listener, err error) {
	if public := a.accounts.opt.PublicCallback; public != nil && s.RedirectPort == 0 {
		if redirect = public(); redirect != "" {
			return redirect, nil, nil
		}
	}
	if l, err = listenCallback(s, known); err != nil {
		return "", nil, err
	}
	return "http://" + l.Addr().String() + "/callback", l, nil
}

// closeCallback closes the listener of a callback, which may be nil.
func closeCallback(l net.Listener) {
	if l != nil {
		_ = l.Close()
	}
}

// ServeHTTP is the public callback of all logins. The state parameter selects the login.
func (k *Accounts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	all := slices.Collect(maps.Values(k.accounts))
	k.mu.Unlock()
	for _, a := range all {
		if l := a.loginInProgress(); l != nil && l.matchesResponse(r.URL.Query()) {
			l.answerCallback(w, r, k.opt.PublicCallback != nil && l.redirect == k.opt.PublicCallback())
			return
		}
	}
	new(pendingLogin).answerCallback(w, r, false)
}

// runLogin waits until the user has answered at the callback or with the device code, and gets the token.
func (a *Account) runLogin(ctx context.Context, l *pendingLogin, listener net.Listener, done func(context.Context)) {
	server := &http.Server{
		Handler: l.newCallbackHandler(), ReadHeaderTimeout: callbackTimeout, ReadTimeout: callbackTimeout,
		WriteTimeout: callbackTimeout, MaxHeaderBytes: maxCallbackHeader,
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if listener != nil {
			_ = server.Serve(listener) // until it is closed
		}
	}()
	err := a.awaitToken(ctx, l)
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callbackTimeout)
	_ = server.Shutdown(sctx) // lets the result page be written
	cancel()
	_ = server.Close()
	<-served
	if err == nil {
		a.accounts.opt.Logger.Info("logged in", "server", a.name, "issuer", l.discovery.as.Issuer)
		before := a.status.Load()
		done(ctx) // before the callers hear of it, so that their calls use the new connection
		switch s := a.status.Load(); {
		case s == before:
			a.setStatus(a.cred.Load(), LoginStatus{})
		case s != nil && s.State == LoginNeeded:
			err = errors.New(s.Reason)
		}
	}
	a.mu.Lock()
	l.Phase = Done
	if err != nil {
		l.Phase, l.Err = Failed, err.Error()
	}
	a.wakeWaitersLocked()
	a.mu.Unlock()
	if err != nil {
		a.accounts.opt.Logger.Warn("a login failed", "server", a.name, "error", err)
	}
	if err == nil || errors.Is(err, errCancelled) {
		a.notify(EventChanged)
		return
	}
	a.notify(EventFailed)
}

var errCancelled = errors.New("it was cancelled")

// awaitToken waits for the user's answer and stores the token.
func (a *Account) awaitToken(ctx context.Context, l *pendingLogin) error {
	var err error
	if l.device != nil {
		var t *tokenResponse
		if t, err = a.newWebClient().pollDevice(ctx, l); err == nil {
			a.storeLogin(ctx, l, t)
			return nil
		}
	} else {
		select {
		case answer := <-l.answers:
			return a.exchangeCode(ctx, l, answer)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errors.New("no login within the time limit")
	case ctx.Err() != nil:
		return errCancelled
	}
	a.forgetIfUnknownClient(ctx, err)
	return err
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
		a.forgetIfUnknownClient(ctx, err)
		return err
	}
	a.storeLogin(ctx, l, t)
	return nil
}

// forgetIfUnknownClient deletes the registration if the authorization server does not know it, so that the next login
// registers again.
func (a *Account) forgetIfUnknownClient(ctx context.Context, err error) {
	if isUnknownClient(err) {
		a.setCredential(ctx, a.cred.Load(), nil)
	}
}

// storeLogin stores the token of a login.
func (a *Account) storeLogin(ctx context.Context, l *pendingLogin, t *tokenResponse) {
	c := l.issued
	c.Scopes, c.RevocationEndpoint = l.scopes, l.discovery.as.Revocation
	c.applyTokenResponse(t)
	a.mu.Lock()
	a.lastChallenge = bearerChallenge{}
	a.mu.Unlock()
	a.setCredential(ctx, &c, &c)
}
