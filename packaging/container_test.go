//go:build linux

package main

import (
	"bufio"
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The root file system of the container has everything that the program needs, for a user without privileges. The test needs
// no container engine.
func TestContainer(t *testing.T) {
	r := madeRelease(t)
	if os.Getuid() != 0 {
		t.Skip("only root can change its root directory")
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "--extract", "--same-owner", "--same-permissions", "--directory", root, "--file", filepath.Join(r.out, "mcpproxy_1.2.3_linux_amd64_rootfs.tar.gz")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inside := func(args ...string) *exec.Cmd {
		cmd := &exec.Cmd{Path: "/usr/bin/mcpproxy", Args: append([]string{"mcpproxy"}, args...), Dir: "/data"}
		cmd.Env = []string{"HOME=/data", "MCPPROXY_DATA_DIR=/data", "MCPPROXY_CONFIG=/data/mcp_config.json"} // as the recipe has them
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
	if out, err := inside("version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "mcpproxy 1.2.3 (commit cccccccccccc of 2026-11-23T10:00:00Z, go1.") {
		t.Fatalf("%v\n%s", err, out)
	}
	serve := inside("serve", "--listen", "0.0.0.0:0")
	said, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Kill(); _ = serve.Wait() }()
	port := ""
	lines, address := bufio.NewScanner(said), regexp.MustCompile(`(?:0\.0\.0\.0|127\.0\.0\.1|\[::\]):(\d+)`)
	for port == "" && lines.Scan() {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			port = found[1]
		}
	}
	if port == "" {
		t.Fatal("it does not say where it answers")
	}
	key, err := os.ReadFile(filepath.Join(root, "data", "api_key"))
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]int{"": http.StatusUnauthorized, strings.TrimSpace(string(key)): http.StatusOK} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+port+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if given != "" {
			req.Header.Set("Authorization", "Bearer "+given)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with a key of %d bytes: %s", len(given), resp.Status)
		}
	}
	if out, err := inside("status").CombinedOutput(); err != nil { // the health check
		t.Errorf("%v\n%s", err, out)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // read to the end
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("it does not end well: %v", err)
	}
}

// The container trusts the same certificate authorities as browsers.
func TestAuthorities(t *testing.T) {
	count := 0
	for rest := authorities(); ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
	}
	if count < 100 {
		t.Errorf("%d authorities", count)
	}
}
