package ops_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/upstream/secret"
)

// world is a test environment: an account with clients, and an MCPProxy without servers.
type world struct {
	t       *testing.T
	home    string
	dir     string
	live    *config.LiveConfig
	store   *secret.Store
	account *ops.Importer
	here    ops.ImportTarget
	sets    int // number of times that a secret was stored
}

func newWorld(t *testing.T, configuration string) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir(), dir: t.TempDir()}
	path := filepath.Join(w.dir, "mcp_config.json")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := config.OpenLiveConfig(path, config.Options{DataDir: w.dir, Lookup: func(string) (string, bool) { return "set", true }})
	if err != nil {
		t.Fatal(err)
	}
	w.live, w.store = live, secret.OpenStore(w.dir, nil)
	w.account = ops.NewImporter(w.env(), w.journal)
	file := ops.NewOfflineAdmin(live)
	w.here = ops.ImportTarget{
		ConfigText: live.ReadFile, CheckNotSelf: live.CheckNotSelfReference, ReadSecret: w.store.Get,
		ServerNames: func(context.Context) (names []string, err error) {
			for _, s := range live.Current().Servers {
				names = append(names, s.Name)
			}
			return names, nil
		},
		StoreSecret: func(ctx context.Context, name, value string) error {
			w.sets++
			_, err := w.store.Set(ctx, name, value)
			return err
		},
		DeleteSecret: w.store.Delete,
		AddServers:   ops.AddServersOneByOneFunc(file.AddServer),
		ChangeServer: func(_ context.Context, c ops.ServerChange) error { _, err := file.ChangeServer(c); return err },
	}
	return w
}

func (w *world) env() clients.Env {
	return clients.Env{GOOS: "linux", Home: w.home, Dir: filepath.Join(w.home, "project"), Root: w.home, Getenv: func(string) string { return "" }}
}

func (w *world) journal() (*clients.Journal, error) {
	return clients.OpenJournal(filepath.Join(w.dir, "client_changes"))
}

// write writes a file in the account's home directory and returns its path.
func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) read(path string) string {
	w.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func (w *world) look(client string) *ops.FoundServers {
	w.t.Helper()
	h, err := w.account.FindServers(w.t.Context(), w.here, client)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// ids returns the IDs of all servers that can be imported.
func ids(h *ops.FoundServers) (all []string) {
	for _, f := range h.Found {
		if !f.IsProxy {
			all = append(all, f.ID)
		}
	}
	return all
}

// take imports everything that was found.
func (w *world) take(h *ops.FoundServers, o ops.ImportOptions) []ops.Result {
	w.t.Helper()
	out, err := h.ImportServers(w.t.Context(), ids(h), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Results
}

func (w *world) undo(client string) []clients.Change {
	w.t.Helper()
	undone, err := w.account.RestoreClientFiles(client)
	if err != nil {
		w.t.Fatal(err)
	}
	return undone
}

// value returns the value of a secret, or "" if there is none.
func (w *world) value(name string) string {
	w.t.Helper()
	value, err := w.store.Get(w.t.Context(), name)
	if err != nil && !errors.Is(err, secret.ErrMissing) {
		w.t.Fatal(err)
	}
	return value
}
