package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mcpproxy/internal/app"
)

// UpstreamCommand is the hidden command that serves one of the sample servers over stdio.
const UpstreamCommand = "demo-upstream"

// defaultAddress is the address of the demo if none is configured and the port is free.
const defaultAddress = "127.0.0.1:8080"

// Options configures the demo.
type Options struct {
	Once    bool   // exit after the session
	Listen  string // the default is defaultAddress, or a free port if that is in use
	Version string
	Out     io.Writer
	Abort   <-chan struct{} // when closed, the demo exits without waiting for calls and servers
}

// Run starts the sample servers and a daemon with a temporary data directory, shows an agent's session, and runs until
// ctx ends. Before it returns, it removes the data directory.
func Run(ctx context.Context, o Options) error {
	dir, err := os.MkdirTemp("", "mcpproxy-demo-")
	if err != nil {
		return fmt.Errorf("the demo needs a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the demo cannot find its own binary: %w", err)
	}
	weatherURL, stopWeather, err := startWeather()
	if err != nil {
		return err
	}
	defer stopWeather()
	configPath, err := writeConfig(dir, self, weatherURL, o.Once)
	if err != nil {
		return err
	}

	asked := ctx // is canceled when the user stops the demo, not when the demo ends on its own
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	logFile, err := os.OpenFile(filepath.Join(dir, "daemon.log"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	ready, ended := make(chan app.DaemonLocation, 1), make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, app.Options{
			ConfigPath: configPath, DataDir: dir, Listen: chooseListenAddress(o.Listen), Version: o.Version,
			Stderr: logFile, Ready: func(r app.DaemonLocation) { ready <- r }, Abort: o.Abort,
			Stopping: func(what string) {
				if asked.Err() != nil {
					printLine(o.Out, "%s", what)
				}
			},
		})
	}()
	select {
	case running := <-ready:
		err = showDemo(ctx, o, running, self)
	case err = <-ended:
		return err
	}
	cancel()
	return errors.Join(err, <-ended)
}

// chooseListenAddress returns the configured address, or the default if it is free, or a free port.
func chooseListenAddress(asked string) string {
	if asked != "" {
		return asked
	}
	l, err := net.Listen("tcp", defaultAddress)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close() // no connection was accepted
	return defaultAddress
}

// startWeather serves the HTTP sample server on a free port.
func startWeather() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("the weather server cannot listen: %w", err)
	}
	s := &http.Server{Handler: NewWeatherHandler(), ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // returns when the server is closed
	}()
	return "http://" + l.Addr().String() + "/mcp", func() { _ = s.Close(); <-done }, nil
}

// writeConfig writes a configuration file like one that a user writes. If hurry is true, shifty changes its tool after
// the first call.
func writeConfig(dir, self, weatherURL string, hurry bool) (string, error) {
	when, shifts := "", "after 20 seconds"
	if hurry {
		when, shifts = fmt.Sprintf(`, "env": {%q: %q}`, shiftVariable, shiftOnCall), "with its first call"
	}
	path := filepath.Join(dir, "mcp_config.json")
	text := fmt.Sprintf(`{
  // Three small servers that come with MCPProxy.
  "mcpServers": {
    "notes":   {"command": %[1]q, "args": [%[2]q, "notes"]},   // read, write and destructive tools
    "weather": {"url": %[3]q},                                 // read-only, over HTTP
    "shifty":  {"command": %[1]q, "args": [%[2]q, "shifty"]%[4]s},  // changes a tool %[5]s
  },
}
`, self, UpstreamCommand, weatherURL, when, shifts)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// showDemo runs the session, prints the log and suggested commands, and waits.
func showDemo(ctx context.Context, o Options, r app.DaemonLocation, self string) error {
	a := &demoClient{url: "http://" + r.Address + "/mcp", out: o.Out}
	printLine(o.Out, "MCPProxy runs at %s, in front of three servers: notes, weather, shifty.", a.url)
	if err := a.runSession(ctx); err != nil {
		return ignoreStopErrors(ctx, err)
	}
	if o.Once {
		if err := a.showHeldTool(ctx, self, r); err != nil {
			return ignoreStopErrors(ctx, err)
		}
		return ignoreStopErrors(ctx, showLog(ctx, o, self, r))
	}
	if err := showLog(ctx, o, self, r); err != nil {
		return ignoreStopErrors(ctx, err)
	}
	printLine(o.Out, "%s", suggestedCommands(self, r))
	err := a.watchShifty(ctx, time.Second)
	if err == nil {
		printLine(o.Out, "%s", approveCommands)
	}
	<-ctx.Done()
	return ignoreStopErrors(ctx, err)
}

// approveCommands are the commands with which a user approves a tool.
const approveCommands = `
See the difference, and approve it if you want it, in the second terminal:

  mcpproxy approvals
  mcpproxy tools diff shifty:add_numbers
  mcpproxy tools approve shifty:add_numbers
`

// showHeldTool shows a changed tool that is held for review, and how a user reviews and approves it.
func (a *demoClient) showHeldTool(ctx context.Context, self string, r app.DaemonLocation) error {
	if err := a.watchShifty(ctx, 20*time.Millisecond); err != nil {
		return err
	}
	printLine(a.out, "\nThe user reviews the difference, and approves it:")
	if err := runSelf(ctx, a.out, self, r.DataDir, "tools", "diff", "shifty:add_numbers"); err != nil {
		return err
	}
	seen, err := exec.CommandContext(ctx, self, "tools", "diff", "shifty:add_numbers", "-o", "json", "--data-dir", r.DataDir).Output()
	if err != nil {
		return fmt.Errorf("mcpproxy tools diff: %w", err)
	}
	var diff struct{ Fingerprint string }
	if err := json.Unmarshal(seen, &diff); err != nil {
		return fmt.Errorf("mcpproxy tools diff: %w", err)
	}
	return runSelf(ctx, a.out, self, r.DataDir, "tools", "approve", "shifty:add_numbers", "--fingerprint", diff.Fingerprint)
}

func showLog(ctx context.Context, o Options, self string, r app.DaemonLocation) error {
	printLine(o.Out, "\nThe activity log has every call, rejection and approval:")
	return runSelf(ctx, o.Out, self, r.DataDir, "activity", "list", "--type", "tool_call,policy_decision,approval")
}

// ignoreStopErrors drops errors that occur because the demo is being stopped.
func ignoreStopErrors(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// runSelf runs an mcpproxy command as a user would, and shows the command and its output.
func runSelf(ctx context.Context, out io.Writer, self, dataDir string, args ...string) error {
	printLine(out, "\n$ mcpproxy %s", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, self, append(args, "--data-dir", dataDir)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("mcpproxy %s: %w", args[0], err)
	}
	return nil
}

// suggestedCommands returns commands that can be pasted into another terminal.
func suggestedCommands(self string, r app.DaemonLocation) string {
	return fmt.Sprintf(`
It stays up. Paste this into a second terminal:

  export MCPPROXY_CONFIG=%s MCPPROXY_DATA_DIR=%s PATH="%s:$PATH"
  mcpproxy call tool-read notes:list_notes
  mcpproxy call tool-read notes:delete_note --args '{"title":"ideas"}'          # refused, exit code 3
  mcpproxy call tool-destructive notes:delete_note --args '{"title":"ideas"}'
  mcpproxy activity list
  mcpproxy ui                                                                   # the same in your browser

Or point Cursor, Claude Code or any MCP client at http://%s/mcp
Ctrl-C ends the demo and removes its data.
`, r.ConfigPath, r.DataDir, filepath.Dir(self), r.Address)
}
