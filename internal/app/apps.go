package app

import (
	"os"
	"path/filepath"
	"time"

	"mcpproxy/internal/ondisk"
)

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
