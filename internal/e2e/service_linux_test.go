package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/volume"
)

// userSystemd runs a user instance of systemd and the following lines in a mount namespace, because systemd checks
// /run for a running system manager.
const userSystemd = `set -e
unset XDG_CONFIG_HOME DBUS_SESSION_BUS_ADDRESS
mount -t tmpfs tmpfs /run/systemd
mkdir /run/systemd/system
cp -a /usr/lib/systemd/user "$HOME/units" # without what a package of MCPProxy has installed here
rm -f "$HOME/units/mcpproxy.service"
mount --bind "$HOME/units" /usr/lib/systemd/user
/lib/systemd/systemd --user >"$HOME/systemd.log" 2>&1 &
manager=$!
trap 'kill $manager; wait $manager || true' EXIT
until [ -S "$XDG_RUNTIME_DIR/systemd/private" ]; do kill -0 $manager; sleep 0.05; done
service() { mcpproxy service "$@" --config "$HOME/a b%.json"; }
service install
service install
service status -o json >"$HOME/first.json"
kill -9 "$(systemctl --user show mcpproxy --property=MainPID --value)"
until service status | grep -q "restarts: 1.*process"; do sleep 0.1; done
until service status | grep -q "answers, version"; do sleep 0.1; done
service status -o json >"$HOME/second.json"
service uninstall
service uninstall
service status -o json >"$HOME/third.json"
`

// The service works with the real systemd. A second installation changes nothing, systemd restarts the service after a
// crash, and removing the service keeps its data.
func TestServiceOfSystemd(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Packages)
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil || exec.Command("unshare", "-m", "-C", "mkdir", "-p", "/run/systemd").Run() != nil {
		t.Skip("systemd cannot run in a namespace on this machine")
	}
	home, runtime := t.TempDir(), t.TempDir() // short enough for sockets
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(bin, "mcpproxy")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "a b%.json"), []byte(`{"listen": "127.0.0.1:0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "-C", "sh", "-c", userSystemd)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+runtime, "PATH="+bin+":"+os.Getenv("PATH"), "SYSTEMD_LOG_TARGET=console")
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(home, "systemd.log"))
		t.Fatalf("%v\n%s\n%s", err, out, log)
	}
	for _, want := range []string{"is running, and starts at each login", "Nothing was changed", "no longer starts", "was not installed"} {
		if strings.Count(string(out), want) != 1 {
			t.Errorf("want %q exactly once in\n%s", want, out)
		}
	}
	type state struct {
		Installed, Enabled, Running, Answers bool
		PID                                  int `json:"pid"`
		Daemon                               int `json:"daemon_pid"`
	}
	var states [3]state
	for i, name := range []string{"first", "second", "third"} {
		raw, err := os.ReadFile(filepath.Join(home, name+".json"))
		if err == nil {
			err = json.Unmarshal(raw, &states[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range states[:2] {
		if !s.Installed || !s.Enabled || !s.Running || !s.Answers || s.PID == 0 || s.PID != s.Daemon {
			t.Errorf("state %d: %+v", i, s)
		}
	}
	if states[0].PID == states[1].PID || states[2] != (state{}) {
		t.Errorf("%+v", states)
	}
	if _, err := os.Stat(filepath.Join(home, ".mcpproxy", "api_key")); err != nil {
		t.Error("the data was removed:", err)
	}
}
