package ops

import (
	"context"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream/oauth"
)

// LoginView is the progress of a user's login to a server.
type LoginView struct {
	Server    string     `json:"server"`
	State     string     `json:"state" enum:"waiting,done,failed" doc:"waiting for the user, done, or failed."`
	URL       string     `json:"url,omitempty" doc:"The URL of the login page. Without a code, open it in a browser on the machine on which MCPProxy runs, or send the last URL in the browser to /login/complete."`
	Code      string     `json:"code,omitempty" doc:"The code that the login page asks for, from any machine. Absent without a device login."`
	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"When the login expires."`
	Error     string     `json:"error,omitempty" doc:"Why the login failed. Absent if it did not."`
	Issuer    string     `json:"authorization_server,omitempty" doc:"The authorization server of the login."`
	Before    string     `json:"previous_authorization_server,omitempty" doc:"The authorization server of the login before, if the server has changed it."`
}

func toLoginView(server string, p oauth.LoginProgress) LoginView {
	v := LoginView{Server: server, State: string(p.Phase), Error: p.Err, Issuer: p.Issuer, Before: p.Before}
	if p.Phase == oauth.Waiting {
		v.URL, v.Code, v.ExpiresAt = p.URL, p.Code, timeOrNil(p.Expires)
	}
	return v
}

// LoginRequest starts a login.
type LoginRequest struct {
	ServerRef
	Headless bool `json:"headless,omitempty" doc:"Whether the user's browser runs on another machine: the login uses a device code if the authorization server supports it."`
}

// LoginCompletion completes a login.
type LoginCompletion struct {
	ServerRef
	URL string `json:"url" required:"true" doc:"The last URL in the user's browser. It contains the answer of the authorization server."`
}

// ServerLogin describes a login that needs attention.
type ServerLogin struct {
	State  string `json:"state" enum:"needed,waiting,retrying" doc:"needed: the user must log in. waiting: a login is in progress. retrying: the authorization server is not available."`
	Reason string `json:"reason" doc:"The reason, without text from a server."`
	Detail string `json:"detail,omitempty" doc:"The error of the authorization server. Absent if there is none."`
	Remedy string `json:"remedy" doc:"What to do."`
}

// loginView returns the description of the login to a server; nil if it works.
func (g *Gateway) loginView(server string) *ServerLogin {
	s := g.Logins.Status(server)
	v := &ServerLogin{State: string(s.State), Reason: s.Reason, Detail: redact.Text(s.Detail), Remedy: LoginCommand(server)}
	switch {
	case s.State == oauth.LoginWorks:
		return nil
	case g.Logins.InProgress(server):
		v.State, v.Remedy = string(oauth.Waiting), "Complete the login in your browser, or start it again: "+v.Remedy
	case s.State == oauth.LoginRetrying:
		v.Remedy = "Wait until the authorization server is available again. If this persists, log in again: " + v.Remedy
	}
	return v
}

// LoginCommand returns the command that logs in to a server.
func LoginCommand(server string) string { return "mcpproxy login " + ShellQuote(server) }

// oauthAccount returns the OAuth account of a server.
func (g *Gateway) oauthAccount(name string) (*oauth.Account, error) {
	if _, err := g.findServer(name); err != nil {
		return nil, err
	}
	if a := g.Logins.Account(name); a != nil {
		return a, nil
	}
	return nil, problem.Newf(problem.InvalidRequest, "Server '%s' does not support a login.", name).
		WithHint("Only an enabled server with a url that is not quarantined, and whose headers have no Authorization, supports logins.")
}

// logoutTimeout limits the duration of the logout from a removed server.
const logoutTimeout = 5 * time.Second

// removeServerAndLogin removes a server, then deletes its login.
func (g *Gateway) removeServerAndLogin(ctx context.Context, name string, remove func() error) error {
	a := g.Logins.Account(name)
	if err := remove(); a == nil || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, logoutTimeout)
	defer cancel()
	if err := a.Logout(ctx); err != nil {
		g.Logger.Warn("the login to a removed server was not deleted", "server", name, "error", err)
	}
	return nil
}

// oauthAccountIfCallerIsUser is like oauthAccount, for operations that only a user may perform.
func (g *Gateway) oauthAccountIfCallerIsUser(c Caller, name, what string) (*oauth.Account, error) {
	if c.Actor.Kind != auth.Admin {
		return nil, problem.Newf(problem.Forbidden, "Only the user can %s.", what).WithHint("Use the command line, or REST with the key.")
	}
	return g.oauthAccount(name)
}

// LoginToServer starts a login to a server, or returns the login in progress. The server reconnects after the login.
func (g *Gateway) LoginToServer(ctx context.Context, c Caller, in LoginRequest) (LoginView, error) {
	a, err := g.oauthAccountIfCallerIsUser(c, in.Name, "log in to a server")
	if err != nil {
		if problem.From(err).Code == problem.Forbidden {
			g.Logins.RequestLogin(in.Name)
		}
		return LoginView{}, err
	}
	progress, err := a.BeginLogin(ctx, in.Headless, func(ctx context.Context) {
		g.recordLoginOrLogout(in.Name, "login", c)
		g.reconnectAfterLogin(ctx, in.Name)
	})
	if err != nil {
		return LoginView{}, err
	}
	return toLoginView(in.Name, progress), nil
}

// reconnectAfterLogin reconnects a server and waits until it is ready or has failed, so that calls work when the login
// is reported. It ends no call in flight if that is possible.
func (g *Gateway) reconnectAfterLogin(ctx context.Context, name string) {
	asked := time.Now()
	err := g.Upstreams.RestartWhenDrained(ctx, name, func() error { return nil })
	if err != nil {
		asked = time.Now()
		err = g.Upstreams.Restart(name)
	}
	if err == nil {
		err = g.waitForServer(ctx, name, asked)
	}
	if err != nil {
		g.Logger.Warn("a server was not connected after its login", "server", name, "error", err)
	}
}

// CompleteLogin completes the login in progress to a server with the URL at which the user's browser has ended.
func (g *Gateway) CompleteLogin(_ context.Context, c Caller, in LoginCompletion) (LoginView, error) {
	a, err := g.oauthAccountIfCallerIsUser(c, in.Name, "log in to a server")
	if err == nil {
		err = a.CompleteLogin(in.URL)
	}
	if err != nil {
		return LoginView{}, err
	}
	progress, _ := a.Progress()
	return toLoginView(in.Name, progress), nil
}

// LoginProgress returns the progress of the last login to a server.
func (g *Gateway) LoginProgress(_ context.Context, _ Caller, in ServerRef) (LoginView, error) {
	a, err := g.oauthAccount(in.Name)
	if err != nil {
		return LoginView{}, err
	}
	progress, ok := a.Progress()
	if !ok {
		return LoginView{}, problem.Newf(problem.NotFound, "No login to server '%s' was started.", in.Name).
			WithHint("Start one with `mcpproxy login " + in.Name + "`.")
	}
	return toLoginView(in.Name, progress), nil
}

// LogoutFromServer deletes the login to a server and reconnects it.
func (g *Gateway) LogoutFromServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	a, err := g.oauthAccountIfCallerIsUser(c, in.Name, "log out of a server")
	if err != nil {
		return ServerView{}, err
	}
	if err := a.Logout(ctx); err != nil {
		return ServerView{}, err
	}
	g.recordLoginOrLogout(in.Name, "logout", c)
	if err := g.Upstreams.Restart(in.Name); err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, c, in)
}

// recordLoginOrLogout records a login or logout.
func (g *Gateway) recordLoginOrLogout(server, action string, c Caller) {
	if err := g.recordActionOnServer(c, server, action); err != nil {
		g.Logger.Error("a login could not be recorded", "server", server, "action", action, "error", err)
	}
}
