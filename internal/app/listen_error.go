package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/problem"
)

// newListenError explains why the address cannot be listened on, and which process uses it.
func (d *daemon) newListenError(address string, err error) error {
	const hint = "choose another address with --listen 127.0.0.1:PORT."
	if !isAddressInUse(err) {
		return problem.Newf(problem.InvalidConfig, "MCPProxy cannot listen on %s: %v", address, err).
			WithHint("C" + hint[1:])
	}
	other, _ := doctor.FindPortHolder(portOf(address))
	dataDir := other.DataDir
	if dataDir == "" {
		dataDir = d.dataDirIfDefaultDaemonListens(address)
	}
	switch {
	case dataDir != "":
		return problem.Newf(problem.InvalidConfig, "MCPProxy cannot listen on %s: another MCPProxy, with the data directory %s, uses the address.", address, dataDir).
			WithHint("Use that one (see `mcpproxy status --data-dir " + dataDir + "`) or stop it; or " + hint +
				" `mcpproxy stdio` and the command line find it there by its own data directory.").Because(err)
	case other.Name != "":
		return problem.Newf(problem.InvalidConfig, "MCPProxy cannot listen on %s: process %d (%s) uses the address.", address, other.PID, other.Name).
			WithHint("Stop it, or " + hint).Because(err)
	}
	return problem.Newf(problem.InvalidConfig, "MCPProxy cannot listen on %s: another program uses the address.", address).
		WithHint("Stop it, or " + hint).Because(err)
}

// defaultDaemonTimeout limits how long the daemon of the default data directory has to answer.
const defaultDaemonTimeout = time.Second

// dataDirIfDefaultDaemonListens returns the default data directory if its daemon listens on the address.
func (d *daemon) dataDirIfDefaultDaemonListens(address string) string {
	dir, err := config.ResolveDataDir("", "", func(name string) (string, bool) {
		if name == config.EnvDataDir {
			return "", false
		}
		return os.LookupEnv(name)
	})
	if err != nil || dir == d.live.Current().DataDir || isMissing(api.SocketPath(dir)) {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), defaultDaemonTimeout)
	defer cancel()
	c := api.NewClient(api.Endpoint{Socket: api.SocketPath(dir), Version: d.opt.Version})
	defer c.Close()
	s, err := api.GetStatus.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return ""
	}
	for _, surface := range s.Surfaces {
		if strings.HasPrefix(surface.Address, fmt.Sprintf("http://%s/", address)) {
			return dir
		}
	}
	return ""
}

// portOf returns the port of an address, or 0 if there is none.
func portOf(address string) (port uint16) {
	if a, err := net.ResolveTCPAddr("tcp", address); err == nil {
		port = uint16(a.Port)
	}
	return port
}
