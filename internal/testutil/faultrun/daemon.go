package faultrun

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const daemonTimeout = 20 * time.Second

// daemon is the MCPProxy process of a run, which can be restarted.
type daemon struct {
	args    []string
	home    string
	data    string
	address string
	key     string
	cmd     *exec.Cmd
	stderr  *bytes.Buffer // of the last start
	ended   chan struct{}
}

func startDaemon(opt Options, data, config string) (*daemon, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	path := filepath.Join(opt.Dir, "config.json")
	if err := errors.Join(l.Close(), os.WriteFile(path, []byte(config), 0o600)); err != nil {
		return nil, err
	}
	d := &daemon{home: opt.Dir, data: data, address: address, args: []string{opt.Binary, "serve", "--config", path, "--data-dir", data, "--listen", address}}
	if err := d.start(); err != nil {
		return nil, err
	}
	return d, nil
}

// start starts the process and waits until it answers.
func (d *daemon) start() error {
	d.stderr, d.ended = &bytes.Buffer{}, make(chan struct{})
	d.cmd = exec.Command(d.args[0], d.args[1:]...)
	d.cmd.Stderr = d.stderr
	d.cmd.Env = append(os.Environ(), "HOME="+d.home, "XDG_RUNTIME_DIR="+filepath.Join(d.home, "memory"))
	if err := d.cmd.Start(); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}(d.cmd, d.ended)
	for deadline := time.Now().Add(daemonTimeout); ; time.Sleep(5 * time.Millisecond) {
		_, err := d.get("/healthz")
		if err == nil {
			key, err := os.ReadFile(filepath.Join(d.data, "api_key"))
			d.key = strings.TrimSpace(string(key))
			return err
		}
		select {
		case <-d.ended:
			return fmt.Errorf("the daemon has ended: %s", d.stderr)
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the daemon does not answer: %w", err)
		}
	}
}

func (d *daemon) pid() int { return d.cmd.Process.Pid }

// kill ends the process with SIGKILL, like a crash.
func (d *daemon) kill() {
	_ = d.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-d.ended
}

// checkReady returns why the daemon is not healthy, or nil.
func (d *daemon) checkReady() error {
	_, err := d.get("/readyz")
	return err
}

// get sends an authenticated GET to the daemon.
func (d *daemon) get(path string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+d.address+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", d.key)
	client := http.Client{Timeout: daemonTimeout}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.300s", resp.StatusCode, body)
	}
	return body, err
}

// Options are what a run needs.
type Options struct {
	Binary  string // of MCPProxy
	Dir     string // of this run; it is created, and empty afterwards
	Seed    uint64
	Clients int
}
