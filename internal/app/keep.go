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

// keepFiles makes the files again that somebody has deleted from the data
// directory of a running daemon: the lock, the key, and the socket, without which
// nobody could ask it or stop it. The log and the database look after their own;
// it looks whenever they have.
func (d *daemon) keepFiles(ctx context.Context) {
	for said := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-d.looked:
		}
		err := d.restoreFiles()
		if err != nil && err.Error() != said {
			d.logger.Error("what was deleted from the data directory cannot be made again", "error", err)
		}
		if said = ""; err != nil {
			said = err.Error()
		}
	}
}

func (d *daemon) restoreFiles() error {
	dir := d.live.Current().DataDir
	if missing(dir) {
		return nil // the log makes it, when it can
	}
	if missing(filepath.Join(dir, doctor.LockFile)) {
		release, err := lockDir(dir)
		if err != nil {
			return err
		}
		old := d.release
		d.release = func() error { return errors.Join(old(), release()) }
		d.logger.Warn("the data directory was deleted or emptied while MCPProxy runs; its files are made again", "data_dir", dir)
	}
	if d.live.Current().APIKey == "" {
		if err := auth.RestoreKey(dir, d.key); err != nil {
			return err
		}
	}
	if !missing(api.SocketPath(dir)) {
		return nil
	}
	// The old one stays open, and ends with its server: its end removes the path.
	socket, err := api.ListenSocket(dir)
	if err != nil {
		return err
	}
	listener := httpserver.New(socket, d.listeners[1].Options)
	d.running.Go(func() {
		if err := d.servers[1].Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			d.logger.Error("the socket of the command line has ended", "error", err)
		}
	})
	return nil
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
