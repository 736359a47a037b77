package app

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"mcpproxy/internal/access"
	"mcpproxy/internal/activity"
	"mcpproxy/internal/admin"
	"mcpproxy/internal/autostart"
	"mcpproxy/internal/builtin"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/config"
	"mcpproxy/internal/connect"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/permission"
	"mcpproxy/internal/process"
	"mcpproxy/internal/secret"
	"mcpproxy/internal/secrets"
	"mcpproxy/internal/takeover"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/userfile"
)

// accessTokens makes tokens for clients.
type accessTokens struct{ *access.Access }

func (t accessTokens) Make(ctx context.Context, by gateway.Caller, name, profile string) (string, error) {
	made, err := t.CreateToken(ctx, by, access.NewToken{Name: name, Profile: profile})
	return made.Token, err
}

func (t accessTokens) Revoke(ctx context.Context, by gateway.Caller, name string) error {
	_, err := t.RevokeToken(ctx, by, access.TokenRef{Name: name})
	return err
}

// clients are those of the account that MCPProxy runs in. A daemon belongs to no
// project: only what counts everywhere is looked at.
func (d *daemon) clients(dataDir string, tokens *access.Access) (*connect.Operations, error) {
	env, err := clients.SystemEnv(runtime.GOOS)
	env.Dir = ""
	self, selfErr := autostart.Self()
	account := &connect.Account{
		Account: &permission.Account{
			Env:   env,
			Tools: func() []permission.Tool { return permission.Tools(builtin.Definitions(d.live.Current().MCPManagement)) },
			Open:  func() (*userfile.Journal, error) { return userfile.Open(filepath.Join(dataDir, "client_changes")) },
		},
		Place: func() connect.Place {
			now := d.live.Current()
			p := connect.Place{
				Base: connect.Base(d.tcp.Addr().String()), Command: self, Args: config.Flags(d.live.Path(), dataDir, nil), NoCommand: selfErr, Locked: now.RequireMCPAuth,
			}
			for _, profile := range now.Profiles {
				p.Profiles = append(p.Profiles, profile.Name)
			}
			return p
		},
		Run:    func(ctx context.Context, argv []string) (string, error) { return process.Run(ctx, argv, os.Environ()) },
		Tokens: accessTokens{tokens},
	}
	return &connect.Operations{Account: account, Journal: gateway.Journal{Log: d.log, Logger: d.logger}}, err
}

// takeover takes over the servers of the account's clients, as somebody may add servers
// and secrets.
func (d *daemon) takeover(account *permission.Account, a *admin.Admin, store *secret.Store, kept *secrets.Operations) *takeover.Operations {
	return takeover.NewOperations(takeover.New(account.Env, account.Open), func(c gateway.Caller) takeover.Here {
		return takeover.Here{
			Text: d.live.Read, Itself: d.live.Itself, Secret: store.Get,
			Names: func(ctx context.Context) (names []string, err error) {
				all, err := a.Servers(ctx, c, gateway.Nothing{})
				for _, s := range all.Servers {
					names = append(names, s.Name)
				}
				return names, err
			},
			Keep: func(ctx context.Context, name, value string) error {
				_, err := kept.SetSecret(ctx, c, secrets.NewSecret{Name: name, Value: value})
				return err
			},
			Forget: func(ctx context.Context, name string) error {
				_, err := kept.DeleteSecret(ctx, c, secrets.SecretRef{Name: name})
				return err
			},
			Add: func(ctx context.Context, all []gateway.NewServer) ([]gateway.ServerView, []error, error) {
				return a.AddServers(ctx, c, all)
			},
			Change: func(ctx context.Context, in gateway.ServerChange) error {
				_, err := a.ChangeServer(ctx, c, in)
				return err
			},
		}
	}, func(c gateway.Caller, servers string, do func() error) error {
		return gateway.Journal{Log: d.log, Logger: d.logger}.Act(c, gateway.Action(c, activity.ConfigChange, tool.ID{}, "import_servers", servers), do)
	})
}
