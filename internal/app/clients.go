package app

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"mcpproxy/internal/access"
	"mcpproxy/internal/autostart"
	"mcpproxy/internal/builtin"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/config"
	"mcpproxy/internal/connect"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/permission"
	"mcpproxy/internal/process"
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
