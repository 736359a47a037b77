package app

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp/httpserver"
	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/problem"
)

// watchForDeletedFiles recreates files that were deleted from the data directory of a running daemon: the lock, the key and the
// socket. Without them no client could reach or stop it. It runs whenever the log has checked its own files.
func (d *daemon) watchForDeletedFiles(ctx context.Context) {
	for said := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-d.spoolChecked:
		}
		err := d.recreateMissingFiles()
		if err != nil && err.Error() != said {
			d.logger.Error("deleted files of the data directory cannot be created again", "error", err)
		}
		if said = ""; err != nil {
			said = err.Error()
		}
	}
}

func (d *daemon) recreateMissingFiles() error {
	dir := d.live.Current().DataDir
	if isMissing(dir) {
		return nil // the log creates it when it can
	}
	if isMissing(filepath.Join(dir, doctor.LockFile)) {
		release, err := lockDir(dir)
		if err != nil {
			return err
		}
		old := d.release
		d.release = func() error { return errors.Join(old(), release()) }
		d.logger.Warn("the data directory was deleted or emptied while MCPProxy runs; its files are created again", "data_dir", dir)
	}
	if d.live.Current().APIKey == "" {
		if err := auth.RestoreMissingKeyFile(dir, d.key); err != nil {
			return err
		}
	}
	if !isMissing(api.SocketPath(dir)) {
		return nil
	}
	// The old one stays open until its server ends, which removes the path.
	socket, err := api.ListenSocket(dir)
	if err != nil {
		return err
	}
	listener := httpserver.New(socket, d.listeners[1].Options)
	d.running.Go(func() {
		if err := d.servers[1].Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			d.logger.Error("the listener of the command-line socket stopped", "error", err)
		}
	})
	return nil
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// ErrInUse is the cause of a problem: another daemon uses the data directory.
var ErrInUse = errors.New("the data directory is in use")

// lockDir locks the data directory for one daemon. The lock ends with the process, so a crash leaves none behind.
func lockDir(dir string) (release func() error, err error) {
	f, err := ondisk.LockFile(filepath.Join(dir, doctor.LockFile))
	switch {
	case err == nil:
		return f.Close, nil
	case errors.Is(err, ondisk.ErrLocked):
		return nil, problem.Newf(problem.InvalidConfig, "Another MCPProxy uses the data directory %s.", dir).
			WithHint("To see it, run `mcpproxy status`. Stop it, or choose another data directory with --data-dir.").Because(ErrInUse)
	}
	return nil, problem.Newf(problem.InvalidConfig, "The data directory cannot be written: %v", err).
		WithHint("Choose another data directory with --data-dir or MCPPROXY_DATA_DIR.")
}

// appsFile is a file in the data directory. Its modification time is the time at which a client with MCP Apps was last
// seen. It makes MCPProxy declare the same to servers after a restart, so that definitions do not change with it.
const appsFile = "apps_client"

// appsMemory is the time for which MCPProxy declares MCP Apps to servers after a client with MCP Apps was last seen.
const appsMemory = 30 * 24 * time.Hour

// wasAppsClientSeen reports whether a client with MCP Apps was seen within appsMemory.
func wasAppsClientSeen(dataDir string) bool {
	info, err := os.Stat(filepath.Join(dataDir, appsFile))
	return err == nil && time.Since(info.ModTime()) < appsMemory
}

// declareApps makes MCPProxy declare MCP Apps to servers, because a client supports them.
func (d *daemon) declareApps() {
	d.appsSeen.Do(func() {
		d.upstreams.DeclareApps()
		if err := ondisk.ReplaceFile(filepath.Join(d.live.Current().DataDir, appsFile), nil); err != nil {
			d.logger.Warn("could not store that a client supports MCP Apps; after a restart, MCPProxy does not declare them to servers until such a client connects", "error", err)
		}
	})
}
