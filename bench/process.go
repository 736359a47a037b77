package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a measured program.
type process struct {
	cmd  *exec.Cmd
	addr string // the address that a role printed
	out  *bufio.Reader
}

// startRole starts this program in another role and waits for its address.
func startRole(args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, out: bufio.NewReader(out)}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s did not start: %w", args[0], err)
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

// stopAndReadLastLine ends a role, and returns the last complete line that it printed.
func (p *process) stopAndReadLastLine() string {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	last := ""
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			break
		}
		last = strings.TrimSpace(line)
	}
	_ = p.cmd.Wait() // ended by a signal
	return last
}

// startProxy starts the MCPProxy binary on a free port with the configuration.
func startProxy(binary, dir, listen, config string) (*process, error) {
	if err := writeConfig(dir, config); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "serve", "--config", configPath(dir), "--data-dir", filepath.Join(dir, "data"), "--listen", listen)
	cmd.Stderr = io.Discard
	if os.Getenv("BENCH_STDERR") != "" {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd: cmd, addr: listen}, nil
}

func configPath(dir string) string { return filepath.Join(dir, "mcp_config.json") }

// writeConfig writes the configuration, which a running MCPProxy then applies.
func writeConfig(dir, config string) error {
	return os.WriteFile(configPath(dir), []byte(config), 0o600)
}

// stop ends the process and waits for it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	_ = p.cmd.Wait()                          // ended by a signal
}

// cpuTime returns the CPU time of all threads of the process.
func (p *process) cpuTime() time.Duration {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var total time.Duration
	for _, t := range tasks {
		raw, err := os.ReadFile(t)
		if err != nil {
			continue // the thread ended
		}
		ns, _ := strconv.ParseInt(strings.Fields(string(raw))[0], 10, 64)
		total += time.Duration(ns)
	}
	return total
}

// residentMemory returns the RSS of the process in MiB.
func (p *process) residentMemory() float64 { return p.readStatusField("VmRSS:") }

// peakMemory returns the peak RSS in MiB.
func (p *process) peakMemory() float64 { return p.readStatusField("VmHWM:") }

func (p *process) readStatusField(field string) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// buildBinary builds the MCPProxy binary to measure.
func buildBinary(dir string) (string, error) {
	binary := filepath.Join(dir, "mcpproxy")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/mcpproxy")
	cmd.Stderr = os.Stderr
	return binary, cmd.Run()
}

// withBinary runs a benchmark with a temporary directory and with the binary, which it builds
// there unless one is given.
func withBinary(binary string, bench func(o options, dir, binary string) error) func(options) error {
	return func(o options) error {
		dir, err := os.MkdirTemp("", "mcpproxy-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if binary == "" {
			if binary, err = buildBinary(dir); err != nil {
				return err
			}
		}
		return bench(o, dir, binary)
	}
}
