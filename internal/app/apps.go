package app

import (
	"os"
	"path/filepath"
	"time"

	"mcpproxy/internal/ondisk"
)

// appsFile is the file of the data directory whose time of change says when a client with MCP Apps was last seen. It
// makes MCPProxy declare the same to servers after a restart, so that definitions do not change with it.
const appsFile = "apps_client"

// appsMemory is how long a client with MCP Apps counts after it was last seen.
const appsMemory = 30 * 24 * time.Hour

// wasAppsClientSeen reports whether a client with MCP Apps was seen lately.
func wasAppsClientSeen(dataDir string) bool {
	info, err := os.Stat(filepath.Join(dataDir, appsFile))
	return err == nil && time.Since(info.ModTime()) < appsMemory
}

// declareApps makes MCPProxy declare MCP Apps to servers, because a client supports them.
func (d *daemon) declareApps() {
	d.appsSeen.Do(func() {
		d.upstreams.DeclareApps()
		if err := ondisk.ReplaceFile(filepath.Join(d.live.Current().DataDir, appsFile), nil); err != nil {
			d.logger.Warn("MCPProxy does not remember after a restart that a client shows MCP Apps", "error", err)
		}
	})
}
