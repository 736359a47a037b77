package demo

import (
	"context"
	"os"

	"mcpproxy/internal/app"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
)

// RunDaemonWithSamples runs a daemon that offers the sample servers to users.
func RunDaemonWithSamples(ctx context.Context, o app.Options) error {
	o.SampleServers = sampleServers()
	return app.Run(ctx, o)
}

// sampleServers returns the sample servers. Each is this binary, started as a stdio server. The list is empty if the
// path of the binary is unknown.
func sampleServers() []ops.AddServerRequest {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	var all []ops.AddServerRequest
	for _, name := range []string{"notes", "weather", "shifty"} {
		all = append(all, ops.AddServerRequest{Name: name, Launch: config.Launch{Command: self, Args: []string{UpstreamCommand, name}}})
	}
	return all
}
