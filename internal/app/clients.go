package app

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"mcpproxy/internal/app/autostart"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcpserver"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/secret"
)

// newClientOperations returns the operations on MCP clients of the account that runs MCPProxy. A daemon belongs to no project, so it reads only global files.
func (d *daemon) newClientOperations(dataDir string, tokens *ops.AccessOperations) (*ops.ClientOperations, error) {
	env, err := clients.SystemEnv(runtime.GOOS)
	env.Dir = ""
	self, selfErr := autostart.ExecutablePath()
	account := &ops.LocalClients{
		AccountClients: &permission.AccountClients{
			Env: env,
			Tools: func() []permission.ProxyTool {
				return permission.ParseTools(mcpserver.BuiltinDefinitions(d.live.Current().MCPManagement))
			},
			Open: func() (*clients.Journal, error) { return clients.OpenJournal(filepath.Join(dataDir, "client_changes")) },
		},
		Endpoint: func() ops.ProxyEndpoint {
			now := d.live.Current()
			p := ops.ProxyEndpoint{
				Base: now.BaseURL(d.tcp.Addr().String(), d.certificate != nil), Listener: config.ListenerURL(d.tcp.Addr().String(), d.certificate != nil), Command: self, Args: config.PathFlags(d.live.Path(), dataDir, nil), NoCommand: selfErr, Locked: now.RequireMCPAuth,
			}
			for _, profile := range now.Profiles {
				p.Profiles = append(p.Profiles, profile.Name)
			}
			return p
		},
		Run: func(ctx context.Context, argv []string) (string, error) {
			return process.RunCommand(ctx, argv, os.Environ())
		},
		Tokens: tokens,
	}
	return &ops.ClientOperations{Account: account, Gateway: d.gateway}, err
}

// newImportOperations returns the operations that import the servers of the account's clients.
func (d *daemon) newImportOperations(account *permission.AccountClients, a *ops.Admin, store *secret.Store, kept *ops.SecretOperations) *ops.ImportOperations {
	return ops.NewImportOperations(ops.NewImporter(account.Env, account.Open), func(c ops.Caller) ops.ImportTarget {
		return ops.ImportTarget{
			ConfigText: d.live.ReadFile, CheckNotSelf: d.live.CheckNotSelfReference, ReadSecret: store.Get,
			ServerNames: func(ctx context.Context) (names []string, err error) {
				all, err := a.Servers(ctx, c, ops.Nothing{})
				for _, s := range all.Servers {
					names = append(names, s.Name)
				}
				return names, err
			},
			StoreSecret: func(ctx context.Context, name, value string) error {
				_, err := kept.SetSecret(ctx, c, ops.SetSecretRequest{Name: name, Value: value})
				return err
			},
			DeleteSecret: func(ctx context.Context, name string) error {
				_, err := kept.DeleteSecret(ctx, c, ops.SecretRef{Name: name})
				return err
			},
			AddServers: func(ctx context.Context, all []ops.AddServerRequest) ([]ops.ServerView, []error, error) {
				return a.AddServers(ctx, c, all)
			},
			ChangeServer: func(ctx context.Context, in ops.ServerChange) error {
				_, err := a.ChangeServer(ctx, c, in)
				return err
			},
		}
	}, d.gateway)
}
