package ops

import (
	"context"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/oauth"
)

// LoginView is the progress of a user's login to a server.
type LoginView struct {
	Server    string     `json:"server"`
	State     string     `json:"state" enum:"waiting,done,failed" doc:"waiting for the user, done, or failed."`
	URL       string     `json:"url,omitempty" doc:"The URL of the login page. Open it in a browser on the machine on which MCPProxy runs."`
	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"When the login expires."`
	Error     string     `json:"error,omitempty" doc:"Why the login failed. Absent if it did not."`
}

func toLoginView(server string, p oauth.LoginProgress) LoginView {
	v := LoginView{Server: server, State: string(p.Phase), Error: p.Err}
	if p.Phase == oauth.Waiting {
		v.URL, v.ExpiresAt = p.URL, timeOrNil(p.Expires)
	}
	return v
}

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
func (g *Gateway) LoginToServer(ctx context.Context, c Caller, in ServerRef) (LoginView, error) {
	a, err := g.oauthAccountIfCallerIsUser(c, in.Name, "log in to a server")
	if err != nil {
		return LoginView{}, err
	}
	progress, err := a.BeginLogin(ctx, func() {
		g.recordLoginOrLogout(in.Name, "login", c)
		if err := g.Upstreams.Restart(in.Name); err != nil {
			g.Logger.Warn("a server was not connected after its login", "server", in.Name, "error", err)
		}
	})
	if err != nil {
		return LoginView{}, err
	}
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
			WithHint("Start one with `mcpproxy upstream login " + in.Name + "`.")
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
