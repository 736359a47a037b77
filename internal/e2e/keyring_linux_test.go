package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// secretService starts a keyring on its own bus, or skips the test. It returns the environment in which programs find
// the keyring.
func secretService(t *testing.T) (env []string) {
	t.Helper()
	for _, program := range []string{"dbus-daemon", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: apt-get install dbus gnome-keyring", program)
		}
	}
	bus := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address")
	out, err := bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run(t, bus)
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	bused := "DBUS_SESSION_BUS_ADDRESS=" + strings.TrimSpace(address)
	// The service sometimes starts without the requested keyring.
	for range 6 {
		if env, err = unlocked(t, bused); err == nil {
			return env
		}
	}
	t.Fatal(err)
	return nil
}

// unlocked replaces a running keyring by a new one and waits until it is unlocked.
func unlocked(t *testing.T, bus string) (env []string, err error) {
	t.Helper()
	home := t.TempDir()
	env = []string{bus, "XDG_DATA_HOME=" + home, "XDG_RUNTIME_DIR=" + home}
	ring := exec.Command("gnome-keyring-daemon", "--foreground", "--replace", "--unlock", "--components=secrets")
	ring.Stdin = strings.NewReader("password of the keyring\n")
	ring.Env = environ(home, env...)
	run(t, ring)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ask := exec.Command("dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets/aliases/default",
			"org.freedesktop.DBus.Properties.Get", "string:org.freedesktop.Secret.Collection", "string:Locked")
		ask.Env = environ(home, env...)
		var out []byte
		out, err = ask.CombinedOutput()
		switch {
		case err == nil && strings.Contains(string(out), "boolean false"):
			return env, nil
		case err == nil:
			err = errors.New("the keyring is locked")
		}
		err = fmt.Errorf("%w: %s", err, out)
	}
	return nil, err
}

// run runs a process until the end of the test.
func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// planted is a daemon with secrets in the environments of five servers and in the headers of a sixth one.
type planted struct {
	*daemon
	environments string // the directory where each server writes its environment
	mu           sync.Mutex
	headers      map[string]bool // Authorization headers that were sent
	shown        []string        // all collected output
}

const plantedCount = 50

func plantedName(i int) string { return fmt.Sprintf("PLANTED_%d", i) }

func plantedValue(i, version int) string { return fmt.Sprintf("xq-%dv%d-3ca55080e84b", i, version) }

func startPlanted(t *testing.T, env ...string) *planted {
	p := &planted{environments: t.TempDir(), headers: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.headers[r.Header.Get("Authorization")] = true
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	servers := map[string]any{"http": map[string]any{"url": server.URL, "headers": map[string]string{"Authorization": "Bearer ${keyring:" + plantedName(0) + "}"}}}
	for s := range 5 {
		env := map[string]string{}
		for i := s; i < plantedCount; i += 5 {
			env[fmt.Sprintf("S%d", i)] = "${keyring:" + plantedName(i) + "}"
		}
		name := fmt.Sprintf("s%d", s)
		// The server also writes a secret to its log.
		script := fmt.Sprintf(`echo "I have $S%d" >&2; env > %s; exec sleep 1000`, s, filepath.Join(p.environments, name))
		servers[name] = map[string]any{"command": "sh", "args": []string{"-c", script}, "env": env}
	}
	servers["other"] = map[string]any{"command": "sh", "args": []string{"-c", "env > " + filepath.Join(p.environments, "other") + "; exec sleep 1000"}}
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	p.daemon = startDaemon(t, string(config), env...)
	return p
}

// set sets a secret with the CLI.
func (p *planted) set(i, version int) {
	p.t.Helper()
	code, stdout, stderr := p.cliWith(plantedValue(i, version)+"\n", "secrets", "set", plantedName(i))
	if code != 0 {
		p.t.Fatalf("%d %s %s", code, stdout, stderr)
	}
	p.shown = append(p.shown, stdout, stderr)
}

// has waits until exactly the secrets of a server are in its environment.
func (p *planted) has(server int, version func(i int) int) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("s%d has its secrets", server), func() error {
		raw, err := os.ReadFile(filepath.Join(p.environments, fmt.Sprintf("s%d", server)))
		for i := range plantedCount {
			line := fmt.Sprintf("S%d=%s\n", i, plantedValue(i, version(i)))
			if strings.Contains(string(raw), line) != (i%5 == server) {
				return fmt.Errorf("secret %d, %v", i, err)
			}
		}
		return nil
	})
}

// look collects the output of all endpoints and commands that could show a secret.
func (p *planted) look() {
	for _, path := range []string{"/secrets", "/servers", "/servers/s1", "/servers/http", "/servers/s1/logs", "/config", "/diagnostics", "/activity", "/status"} {
		_, body := p.rest("GET", path, "")
		p.shown = append(p.shown, string(body))
	}
	for _, args := range [][]string{{"secrets", "list", "-o", "json"}, {"upstream", "get", "s1"}, {"upstream", "list"}, {"config", "show"}, {"upstream", "logs", "s2"}, {"config", "validate"}} {
		_, stdout, stderr := p.cli(args...)
		p.shown = append(p.shown, stdout, stderr)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		raw, _ := os.ReadFile(line) // the process may have ended
		p.shown = append(p.shown, string(raw))
	}
	p.shown = append(p.shown, p.stderr.String())
}

// nowhere checks that no secret value is in the output or in a file.
func (p *planted) nowhere() {
	p.t.Helper()
	other, err := os.ReadFile(filepath.Join(p.environments, "other"))
	if err != nil {
		p.t.Error(err)
	}
	p.shown = append(p.shown, string(other))
	for _, text := range p.shown {
		if at := strings.Index(text, "-3ca55080e84b"); at >= 0 {
			p.t.Errorf("a secret is shown: %.200s", text[max(0, at-100):])
		}
	}
	files := eachFile(p.t, p.dir, func(path string, content []byte) {
		if strings.Contains(string(content), "-3ca55080e84b") {
			p.t.Errorf("a secret is in %s", path)
		}
	})
	if files < 5 {
		p.t.Errorf("only %d files", files)
	}
}

// TestSecretsReachTheirServersOnly: fifty secrets reach only the servers that refer to them, from the system keyring
// and from the encrypted file.
func TestSecretsReachTheirServersOnly(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{"file", "keyring"} {
		t.Run(kept, func(t *testing.T) {
			t.Parallel()
			env := []string{noKeyring}
			if kept == "keyring" {
				env = append(secretService(t), "MCPPROXY_NO_KEYRING=")
			}
			p := startPlanted(t, env...)
			p.awaitState("s3", "needs_secret")
			eventually(t, "the status shows a remedy", func() error { // a slow keyring has not answered yet
				if _, body := p.rest("GET", "/servers/s3", ""); !strings.Contains(string(body), "mcpproxy secrets set "+plantedName(3)) {
					return fmt.Errorf("%s", body)
				}
				return nil
			})
			for i := range plantedCount / 2 {
				p.set(i, 1)
			}
			p.stop() // set the other half without a daemon
			for i := plantedCount / 2; i < plantedCount; i++ {
				p.set(i, 1)
			}
			p.start()
			for s := range 5 {
				p.has(s, func(int) int { return 1 })
			}
			p.look()
			p.changedBesides()
			p.look()
			if code, _, stderr := p.cli("secrets", "set", plantedName(1), "on-the-line"); code != 2 || strings.Contains(stderr, "on-the-line") {
				t.Errorf("a value as an argument: %d %s", code, stderr)
			}
			_, list := p.rest("GET", "/secrets", "")
			if n := strings.Count(string(list), `"kept":"`+kept+`"`); n != plantedCount {
				t.Errorf("%d secrets are stored in the %s: %s", n, kept, list)
			}
			if code, _, _ := p.cli("secrets", "delete", plantedName(2), "--yes"); code != 0 {
				t.Errorf("delete: %d", code)
			}
			p.awaitState("s2", "needs_secret")
			p.stop()
			p.shown = append(p.shown, p.stderr.String())
			p.nowhere()
		})
	}
}

// changedBesides changes one secret through the daemon and one without it. The servers that use them get the new
// values.
func (p *planted) changedBesides() {
	p.t.Helper()
	p.set(0, 2)
	socket := filepath.Join(p.dataDir(), "mcpproxy.sock")
	if err := os.Rename(socket, socket+".away"); err != nil {
		p.t.Fatal(err)
	}
	p.set(1, 2)
	if err := os.Rename(socket+".away", socket); err != nil {
		p.t.Fatal(err)
	}
	for s := range 5 {
		p.has(s, func(i int) int {
			if i < 2 {
				return 2
			}
			return 1
		})
	}
	eventually(p.t, "the header has the new secret", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.headers["Bearer "+plantedValue(0, 2)] {
			return fmt.Errorf("%d different headers", len(p.headers))
		}
		return nil
	})
}
