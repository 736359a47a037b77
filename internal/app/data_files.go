package app

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp/httpserver"
	"mcpproxy/internal/ops/doctor"
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
