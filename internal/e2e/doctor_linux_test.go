package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/testutil/faultfs"
	"mcpproxy/internal/testutil/mcptest"
)

// patient is a broken installation that the doctor's instructions repair.
type patient struct {
	*daemon
	bin string // directory of server programs, and of the binary as mcpproxy
	env []string
}

// sick is one problem of an installation, with its repair.
type sick struct {
	config string // members of the configuration file
	under  []string
	down   bool             // no daemon is started
	before func(p *patient) // breaks it before the daemon starts
	breaks func(p *patient) // breaks it after that
	words  []string         // words that the output must contain
	fix    bool             // --fix repairs it; otherwise the printed command does
	heals  func(p *patient) // the manual step before the printed command
	yes    bool             // the command needs --yes
	run    func(p *patient, command string)
	stays  bool // a note, or a problem that no command repairs
	needs  func(t *testing.T)
}

// report runs the doctor and returns its exit code and report. args select the check.
func (p *patient) report(args ...string) (code int, r doctor.Report) {
	p.t.Helper()
	code, out, stderr := p.cli(append([]string{"doctor", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		p.t.Fatalf("%v: %s%s", err, out, stderr)
	}
	return code, r
}

// sound reports whether a check found no problem.
func sound(r doctor.Report) bool {
	return !slices.ContainsFunc(r.Checks, func(c doctor.CheckResult) bool { return c.State != doctor.OK && c.State != doctor.Skipped })
}

// shell runs a command as a user would paste it. A command that starts the daemon runs until the test ends.
func (p *patient) shell(command, stdin string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(append(os.Environ(), "HOME="+p.dir, "PATH="+p.bin+":"+os.Getenv("PATH")), p.env...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	if strings.Contains(command, "mcpproxy --config") && strings.Contains(command, " serve") {
		p.t.Cleanup(func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // the group: the shell and the daemon
			<-done
			cancel()
			if p.t.Failed() {
				p.t.Logf("%s:\n%s", command, out)
			}
		})
		return
	}
	defer cancel()
	select {
	case err := <-done:
		if err != nil {
			p.t.Errorf("%s: %v\n%s", command, err, out)
		}
	case <-time.After(patience):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
		p.t.Errorf("%s: the command does not end\n%s", command, out)
	}
}

// program writes a program into the directory of programs.
func (p *patient) program(name, script string) string {
	p.t.Helper()
	path := filepath.Join(p.bin, name)
	_ = os.Remove(path) // a running program cannot be overwritten
	if err := mcptest.WriteProgram(path, []byte("#!/bin/sh\n"+script+"\n")); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// serves returns a script that runs an MCP server.
func serves(t testing.TB) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "MCPTEST_SERVER=zoo exec " + own
}

// editor installs an editor that writes this text.
func (p *patient) editor(text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, "right.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.env = append(p.env, "EDITOR="+p.program("editor", `cat `+file+` > "$2"`))
}

func (p *patient) path(name string) string { return filepath.Join(p.dataDir(), name) }

func (p *patient) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) did(args ...string) {
	p.t.Helper()
	if code, _, stderr := p.cli(args...); code != 0 {
		p.t.Fatalf("%v: exit code %d, %s", args, code, stderr)
	}
}

func (p *patient) chmod(path string, mode os.FileMode) { p.t.Helper(); p.must(os.Chmod(path, mode)) }

// settings returns the configuration with the address of the daemon and these members.
func (p *patient) settings(members string) string {
	if members != "" {
		members = ", " + members
	}
	return fmt.Sprintf("{\n\"listen\": %q%s\n}\n", p.address, strings.ReplaceAll(members, "BIN", p.bin))
}

// TestDoctor breaks an installation in each way that the doctor detects, runs the recommended fix, and expects the
// check to pass after it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	for code, c := range sicknesses() {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			if c.needs != nil {
				c.needs(t)
			}
			code, _, _ := strings.Cut(code, " ")
			p := newPatient(t, c)
			if c.breaks != nil {
				c.breaks(p)
			}
			found := p.found(code, c)
			switch {
			case t.Failed(), c.stays && c.run == nil && c.heals == nil:
				return
			case c.heals != nil:
				c.heals(p)
			}
			command := found.Command
			if c.yes {
				command += " --yes"
			}
			switch {
			case c.run != nil:
				c.run(p, command)
			case c.fix:
				if !found.Fixable {
					t.Errorf("--fix does not repair it: %+v", found)
				}
				_, r := p.report("--only", code, "--fix")
				if len(r.Fixed) == 0 || r.Fixed[0].Error != "" || r.Fixed[0].Command != found.Command {
					t.Errorf("fixed: %+v", r.Fixed)
				}
			default:
				p.shell(command, "value\n")
			}
			eventually(t, code+" is repaired", func() error {
				if exit, r := p.report("--only", code); !sound(r) || exit != 0 {
					return fmt.Errorf("exit code %d: %+v", exit, r)
				}
				return nil
			})
		})
	}
}

// TestEveryCheckHasAFailingCase: each check of the doctor has an installation for which it reports a problem.
func TestEveryCheckHasAFailingCase(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{
		"D708": true,                                           // internal/ops/doctor, TestChecksAreBounded
		"D709": true, "D710": true, "D711": true, "D712": true, // TestUnsignedDecisionsAreInvalid
	}
	for name := range sicknesses() {
		code, _, _ := strings.Cut(name, " ")
		broken[code] = true
	}
	for _, code := range doctor.CodesAndNames() {
		if strings.HasPrefix(code, "D") && !broken[code] {
			t.Errorf("no test case makes %s fail", code)
		}
	}
}

func newPatient(t *testing.T, c sick) *patient {
	t.Helper()
	p := &patient{daemon: &daemon{t: t, dir: t.TempDir(), address: freeAddress(t), under: c.under}}
	p.bin = filepath.Join(p.dir, "bin")
	p.must(os.MkdirAll(p.bin, 0o700))
	p.must(os.MkdirAll(p.dataDir(), 0o700))
	p.must(os.Symlink(binary, filepath.Join(p.bin, "mcpproxy")))
	p.writeConfig(p.settings(c.config))
	for i := range p.under {
		p.under[i] = strings.ReplaceAll(p.under[i], "BIN", p.bin)
	}
	if c.before != nil {
		c.before(p)
	}
	if !c.down {
		p.start()
		t.Cleanup(func() {
			if p.cmd != nil {
				p.kill()
			}
			if t.Failed() {
				t.Logf("stderr of the daemon:\n%s", p.stderr)
			}
		})
	}
	return p
}

// found waits until the check reports the problem, and verifies the report.
func (p *patient) found(code string, c sick) (found doctor.CheckResult) {
	p.t.Helper()
	eventually(p.t, code+" is found", func() error {
		exit, r := p.report("--only", code)
		at := slices.IndexFunc(r.Checks, func(c doctor.CheckResult) bool { return c.State != doctor.OK && c.State != doctor.Skipped })
		if at < 0 {
			return fmt.Errorf("the check found nothing: %+v", r)
		}
		found = r.Checks[at]
		if want := map[bool]int{true: 1}[found.State == doctor.Bad]; exit != want {
			return fmt.Errorf("exit code %d of %s, want %d", exit, found.State, want)
		}
		text := found.What + " " + found.Subject + " " + strings.Join(found.Lines, "\n")
		for _, w := range c.words {
			if !strings.Contains(text, w) {
				return fmt.Errorf("%q is missing in the report: %+v", w, found)
			}
		}
		return nil
	})
	if found.Code != code || found.Name == "" || found.Why == "" || found.Command == "" && !c.stays {
		p.t.Errorf("the report is incomplete: %+v", found)
	}
	return found
}

// server returns the configuration of a server that runs a program in BIN.
func server(program, more string) string {
	return `"mcpServers": {"s": {"command": "BIN/` + program + `"` + more + `}}`
}

const saysReads = `{"name":"look","description":"Looks.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`

func sicknesses() map[string]sick {
	all := map[string]sick{}
	for _, some := range []map[string]sick{sickDaemons(), sickFiles(), sickConfigurations(), sickServers(), sickTools(), sickClients(), sickMachines()} {
		for code, c := range some {
			all[code] = c
		}
	}
	return all
}

func sickDaemons() map[string]sick {
	var other atomic.Pointer[daemon]
	return map[string]sick{
		"D101": {down: true, words: []string{"not running"}},
		"D102": {breaks: func(p *patient) { p.must(p.cmd.Process.Signal(syscall.SIGSTOP)) }, words: []string{"mcpproxy", "does not answer"}},
		"D103": {under: []string{"sh", "-c", `exec BIN/older "$@"`}, before: func(p *patient) { p.must(copyFile(binary, filepath.Join(p.bin, "older"))) },
			breaks: func(p *patient) { p.must(os.Remove(filepath.Join(p.bin, "older"))) }, words: []string{"was replaced"}},
		"D104":       {breaks: func(p *patient) { p.chmod(p.path("mcpproxy.sock"), 0o666) }, words: []string{"0666"}, fix: true},
		"D105":       {breaks: func(p *patient) { p.kill() }, words: []string{"mcpproxy.sock"}, fix: true},
		"D105 by rm": {breaks: func(p *patient) { p.kill() }},
		"D106": {down: true, breaks: func(p *patient) {
			l := listenLow(p.t, 20_000)
			p.address = l.Addr().String()
			p.writeConfig(p.settings(""))
		}, words: []string{fmt.Sprintf("Process %d (e2e.test)", os.Getpid())}},
		"D107": {down: true, breaks: func(p *patient) {
			l := listenLow(p.t, 26_000)
			l.Close()
			d := startDaemonAt(p.t, l.Addr().String(), nil, "{}")
			other.Store(d)
			p.address = d.address
			p.writeConfig(p.settings(""))
		}, words: []string{"Another MCPProxy", "/data"}},
		"D108": {breaks: func(p *patient) { p.did("pause", "--reason", "wrong files") }, words: []string{"paused", "wrong files"}},
	}
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return mcptest.WriteProgram(to, data)
}

func needsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount file systems or change the owner of files")
	}
}

func needsMounts(t *testing.T) {
	needsRoot(t)
	faultfs.SkipUnlessAvailable(t)
}

func needsSQLite(t *testing.T) {
	if _, err := exec.LookPath("sqlite3"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("sqlite3 is required in CI: it is the other program that uses the database")
		}
		t.Skip("sqlite3 is not installed; it is the other program that uses the database")
	}
}

// small mounts a small file system as the data directory.
func small(size int64) func(p *patient) {
	return func(p *patient) {
		m, err := faultfs.MountTmpfs(p.dataDir(), size)
		p.must(err)
		p.t.Cleanup(func() { _ = exec.Command("umount", "-l", m.Dir).Run() })
	}
}

func sickFiles() map[string]sick {
	return map[string]sick{
		"D201":          {down: true, breaks: func(p *patient) { p.must(os.Remove(p.dataDir())) }, fix: true},
		"D202":          {breaks: func(p *patient) { p.chmod(p.dataDir(), 0o755) }, words: []string{"0755"}, fix: true},
		"D202 by chmod": {breaks: func(p *patient) { p.chmod(p.dataDir(), 0o755) }},
		"D203": {needs: needsMounts, down: true, before: small(8 << 20), words: []string{"read-only"}, breaks: func(p *patient) {
			p.must(exec.Command("mount", "-o", "remount,ro", p.dataDir()).Run())
		}},
		"D204": {needs: needsRoot, down: true, words: []string{"12345"}, breaks: func(p *patient) {
			p.must(os.WriteFile(p.path("restrictions.log"), nil, 0o600))
			p.must(os.Chown(p.path("restrictions.log"), 12345, -1))
		}},
		"D205": {breaks: func(p *patient) { p.chmod(p.configPath(), 0o644) }, words: []string{"0644", "mcp_config.json"}, fix: true},
		"D206": {breaks: func(p *patient) { p.chmod(p.path("api_key"), 0o640) }, words: []string{"0640", "api_key"}, fix: true},
		"D207": {down: true, breaks: func(p *patient) { p.must(os.WriteFile(p.path("api_key"), nil, 0o600)) }, words: []string{"contains no key"}},
		"D208": {breaks: func(p *patient) {
			p.chmod(p.path("mcpproxy.db"), 0o644)
			p.chmod(p.path("spool"), 0o755)
		}, words: []string{"mcpproxy.db"}, fix: true},
		"D209": {before: func(p *patient) {
			p.must(os.WriteFile(p.path("mcpproxy.db"), bytes.Repeat([]byte("no database "), 1000), 0o600))
		},
			words: []string{"old databases", "corrupt-"}},
		"D210": {needs: needsSQLite, words: []string{"version 99"}, breaks: func(p *patient) {
			eventually(p.t, "the database exists", func() error {
				_, err := p.sqlite("SELECT version_id FROM goose_db_version WHERE version_id = 8")
				return err
			})
			p.stop()
			_, err := p.sqlite("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")
			p.must(err)
		}},
		"D211": {down: true, breaks: func(p *patient) {
			p.must(os.WriteFile(p.path("mcpproxy.db"), bytes.Repeat([]byte("no database "), 1000), 0o600))
		}},
		"D212": {words: []string{"The database is damaged"}, breaks: func(p *patient) {
			eventually(p.t, "the database exists", func() error {
				_, err := os.Stat(p.path("mcpproxy.db"))
				return err
			})
			p.stop()
			file, err := os.ReadFile(p.path("mcpproxy.db"))
			p.must(err)
			copy(file[len(file)/2&^4095:], bytes.Repeat([]byte{0x5a}, 4096))
			p.must(os.WriteFile(p.path("mcpproxy.db"), file, 0o600))
		}},
	}
}

func (p *patient) sqlite(statement string) (string, error) {
	out, err := exec.Command("sqlite3", "-cmd", ".timeout 5000", p.path("mcpproxy.db"), statement).CombinedOutput()
	return string(out), err
}

func sickConfigurations() map[string]sick {
	twins := func(p *patient) { p.program("one", serves(p.t)) }
	right := func(members string) func(*patient) { return func(p *patient) { p.editor(p.settings(members)) } }
	return map[string]sick{
		"D301":           {down: true, breaks: func(p *patient) { p.writeConfig("{\n\"tools_limit\": }\n") }, words: []string{"mcp_config.json:2:16"}, heals: right("")},
		"D301 and lives": {breaks: func(p *patient) { p.writeConfig(p.settings(`"tools_limit": "many"`)) }, words: []string{"mcp_config.json:2:"}, heals: right("")},
		"D302":           {down: true, config: `"tool_limit": 5`, words: []string{`unknown key "tool_limit"`, `"tools_limit"`}, heals: right(`"tools_limit": 5`)},
		"D303": {config: server("one", `, "env": {"TOKEN": "${env:DOCTOR_TEST_TOKEN}"}`), before: twins,
			words: []string{"DOCTOR_TEST_TOKEN"}},
		"D304": {config: `"mcpServers": {"a": {"command": "BIN/one"}, "b": {"command": "BIN/one"}, "c": {"command": "BIN/one", "env": {"ACCOUNT": "2"}}}`,
			before: twins, words: []string{"Servers a and b"}, yes: true},
		"D305": {breaks: func(p *patient) { p.writeConfig(p.settings(`"activity_durability": "power"`)) }, words: []string{"activity_durability"}},
		"D306": {config: server("one", `, "autoApprove": ["x"]`), before: twins, words: []string{"autoApprove"}, heals: right(server("one", ""))},
		"D308": {config: server("one", `, "env": {"DOCTOR_TEST_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}`), before: twins, words: []string{"Server s has", "env.DOCTOR_TEST_TOKEN"}},
		"D307": {breaks: func(p *patient) {
			if code, out, screen := p.atTerminal([]prompted{{"New passphrase: ", thePassphrase}, {"Repeat it: ", thePassphrase}}, "presence", "set", "passphrase"); code != 0 {
				p.t.Fatalf("%d\n%s\n%s", code, out, screen)
			}
			p.writeConfig(p.settings(`"presence": "passphrase", "quarantine_enabled": false`))
		}, words: []string{"quarantine_enabled", "mcpproxy config confirm"}, run: func(p *patient, _ string) {
			if code, out, screen := p.atTerminal([]prompted{{"Passphrase (empty to stop): ", thePassphrase}}, "config", "confirm"); code != 0 {
				p.t.Errorf("%d\n%s\n%s", code, out, screen)
			}
		}},
		"D307 without an anchor": {config: `"presence": "passphrase"`, words: []string{"no anchor is set", "set one: `mcpproxy presence set passphrase`"}, run: func(p *patient, _ string) {
			if code, out, screen := p.atTerminal([]prompted{{"New passphrase: ", thePassphrase}, {"Repeat it: ", thePassphrase}}, "presence", "set", "passphrase"); code != 0 {
				p.t.Errorf("%d\n%s\n%s", code, out, screen)
			}
		}},
	}
}

// listenLow listens on a port below the range of automatically assigned ports, so that the next port, which the doctor
// proposes, stays free.
func listenLow(t testing.TB, from int) net.Listener {
	t.Helper()
	for port := from + os.Getpid()%5_000; ; port += 2 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			t.Cleanup(func() { l.Close() })
			return l
		}
	}
}

// replaced replaces a program by one that runs an MCP server.
func replaced(name string) func(p *patient) {
	return func(p *patient) { p.program(name, serves(p.t)) }
}

func sickServers() map[string]sick {
	pathed := `, "args": ["-y", "some-server"], "env": {"PATH": "BIN"}`
	script := func(name, text string) func(p *patient) { return func(p *patient) { p.program(name, text) } }
	shut := func(p *patient) {
		p.writeConfig(p.settings(fmt.Sprintf(`"mcpServers": {"s": {"url": "http://%s/mcp"}}`, freeAddress(p.t))))
	}
	all := map[string]sick{
		"D401":         {config: server("absent", ""), words: []string{"absent", "not found"}, heals: replaced("absent")},
		"D401 offline": {down: true, config: server("absent", ""), words: []string{"absent", "not found"}, heals: replaced("absent")},
		"D402": {config: server("npx", pathed), before: func(p *patient) {
			p.must(mcptest.WriteProgram(filepath.Join(p.bin, "npx"), []byte("#!/usr/bin/env node\n")))
		}, words: []string{"node"}, heals: replaced("node")},
		"D403": {config: server("uvx", `, "args": ["some-server"]`), words: []string{"uvx"}, heals: replaced("uvx")},
		"D404": {config: server("docker", `, "args": ["run", "-i", "some/image"]`), words: []string{"Docker daemon"}, heals: replaced("docker"),
			before: script("docker", `echo "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?" >&2; exit 125`)},
		"D405":         {config: server("one", `, "working_dir": "BIN/work/here"`), before: replaced("one"), words: []string{"work/here"}},
		"D405 offline": {down: true, config: server("one", `, "working_dir": "BIN/work/here"`), before: replaced("one"), words: []string{"work/here"}},
		"D406": {config: `"mcpServers": {"s": {"url": "http://no-such-host.invalid/mcp"}}`, words: []string{"no-such-host.invalid"}, heals: func(p *patient) {
			p.did("upstream", "set", "s", "url", startUpstream(p.t, saysReads).URL)
		}},
		"D407": {breaks: shut, words: []string{"nothing answers"}, heals: func(p *patient) {
			p.did("upstream", "set", "s", "url", startUpstream(p.t, saysReads).URL)
		}},
		"D414": {config: `"connect_timeout": "1s", ` + server("one", ""), before: script("one", `echo "waits for its database" >&2; exec sleep 60`),
			words: []string{"waits for its database"}, heals: replaced("one")},
		"D415": {config: server("one", ""), before: script("one", `echo "first words" >&2; echo "KeyError: API_TOKEN" >&2; exit 3`),
			words: []string{"exit status 3", "first words", "KeyError: API_TOKEN"}, heals: replaced("one")},
		"D417": {breaks: func(p *patient) {
			p.writeConfig(p.settings(fmt.Sprintf(`"mcpServers": {"s": {"url": %q, "quarantined": true}}`, startUpstream(p.t, saysReads).URL)))
		}, words: []string{"review"}, run: func(p *patient, approve string) {
			p.shell(approve+" --yes", "") // approve the launch
			p.shell(approve+" --yes", "") // approve its definitions
		}},
		"D419": {config: server("one", ""), before: func(p *patient) {
			p.program("one", "while [ ! -e "+p.bin+"/go ]; do sleep 0.05; done; "+serves(p.t))
		}, words: []string{"starting"}, heals: func(p *patient) { p.program("go", "") }},
		"D420": {config: server("one", `, "enabled": false`), before: replaced("one"), words: []string{"disabled"}},
		"D421": {under: []string{"env", "MCPPROXY_NO_KEYRING=1"}, config: server("one", `, "env": {"TOKEN": "${keyring:DOCTOR_TEST}"}`), before: replaced("one"),
			words: []string{"the secret DOCTOR_TEST"}, run: func(p *patient, command string) {
				p.env = append(p.env, "MCPPROXY_NO_KEYRING=1")
				p.shell(command, "a value")
			}},
		"D422": {config: server("one", ""), before: func(p *patient) {
			p.program("one", `echo "Listening on port 3000"; `+serves(p.t))
		}, words: []string{"not JSON-RPC messages"}, run: func(p *patient, _ string) {
			if code, out, _ := p.cli("upstream", "get", "s"); code != 0 || !strings.Contains(out, "not JSON-RPC messages") {
				p.t.Errorf("upstream get: %d %s", code, out)
			}
			p.program("one", serves(p.t))
			p.did("upstream", "restart", "s")
		}},
		"D423": {config: server("one", `, "sandbox": {"mode": "strict", "read": ["/no/such/folder"]}`), before: replaced("one"),
			words: []string{"sandbox", "/no/such/folder", "does not exist"}, run: func(p *patient, _ string) { p.did("upstream", "set", "s", "sandbox", "--unset") }},
		"D411": {under: []string{"env", "MCPPROXY_NO_KEYRING=1"}, breaks: requireLoginForServer, words: []string{"login"}, run: func(p *patient, _ string) {
			if code, stderr := p.logIn("s"); code != 0 {
				p.t.Errorf("login: %d, %s", code, stderr)
			}
		}},
	}
	for code, c := range map[string]struct {
		status int
		word   string
	}{"D412": {403, "403"}, "D413": {404, "404"}, "D418": {200, "neither JSON nor an event stream"}} {
		var good atomic.Bool
		all[code] = sick{words: []string{c.word}, breaks: func(p *patient) {
			real := startUpstream(p.t, saysReads)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if good.Load() {
					real.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(c.status)
				fmt.Fprint(w, "<p>Hello</p>")
			}))
			p.t.Cleanup(s.Close)
			p.writeConfig(p.settings(fmt.Sprintf(`"mcpServers": {"s": {"url": %q, "protocol": "http"}}`, s.URL)))
		}, heals: func(*patient) { good.Store(true) }}
	}
	var empty atomic.Pointer[fakeUpstream]
	all["D416"] = sick{words: []string{"lists no tool"}, breaks: func(p *patient) {
		empty.Store(startUpstream(p.t))
		p.writeConfig(p.settings(fmt.Sprintf(`"mcpServers": {"s": {"url": %q}}`, empty.Load().URL)))
	}, heals: func(*patient) { empty.Load().define(saysReads) }}
	for code, c := range sickCertificates() {
		all[code] = c
	}
	return all
}

func sickTools() map[string]sick {
	const silent = `{"name":"list_issues","description":"List the issues of a repository.","inputSchema":{"type":"object"}}`
	with := func(more string, tools ...string) func(p *patient) {
		return func(p *patient) {
			p.writeConfig(p.settings(fmt.Sprintf(`"mcpServers": {"s": {"url": %q%s}}`, startUpstream(p.t, tools...).URL, more)))
		}
	}
	return map[string]sick{
		"D501": {breaks: with("", silent), words: []string{"look like reads: 1"}},
		"D502": {breaks: with(`, "trust": "manual"`, saysReads), words: []string{"wait for your approval", ": 1."}, yes: true},
		"D502 of a prompt": {config: server("one", `, "trust": "manual"`), before: replaced("one"), words: []string{"wait for your approval"}, run: func(p *patient, command string) {
			p.shell(command+" --yes --with-findings", "")
		}},
		"D502 offline": {breaks: func(p *patient) {
			with(`, "trust": "manual"`, saysReads)(p)
			p.found("D502", sick{})
			p.stop()
			if code, out, _ := p.cli("status"); code != 4 || !strings.Contains(out, "1 tool: mcpproxy approvals") {
				p.t.Errorf("status: exit code %d\n%s", code, out)
			}
		}, words: []string{"wait for your approval", ": 1."}, run: func(p *patient, serve string) {
			p.shell(serve, "")
			eventually(p.t, "the daemon runs", func() error {
				if code, _, stderr := p.cli("status"); code != 0 {
					return fmt.Errorf("%s", stderr)
				}
				return nil
			})
			p.shell(p.found("D502", sick{}).Command+" --yes", "")
		}},
		"D504": {breaks: func(p *patient) {
			with(`, "disabled_tools": ["lok_*"]`, saysReads)(p)
			p.awaitTools("s:look")
		}, words: []string{"lok_*"}, heals: func(p *patient) { with("", saysReads)(p) }},
		"D503": {breaks: func(p *patient) {
			with("", saysReads)(p)
			p.awaitTools("s:look")
			p.stop()
			p.must(os.Remove(p.path("mcpproxy.db")))
			p.start()
			p.awaitTools("s:look")
		}, words: []string{"are lost"}, yes: true},
	}
}

func sickClients() map[string]sick {
	has := func(name, entry string) func(p *patient) {
		return func(p *patient) { p.inHome(name, `{"mcpServers": {`+strings.ReplaceAll(entry, "HERE", p.address)+`}}`) }
	}
	return map[string]sick{
		"D601": {breaks: has(".cursor/mcp.json", ""), words: []string{"Cursor"}, yes: true},
		"D602": {breaks: has(".cursor/mcp.json", `"mcpproxy": {"url": "http://127.0.0.1:9/mcp"}`), words: []string{"has the address http://127.0.0.1:9/mcp"}, yes: true},
		"D603": {breaks: has(".lmstudio/mcp.json", `"mcpproxy": {"command": "/gone/mcpproxy", "args": ["stdio"]}`), words: []string{"starts /gone/mcpproxy"}, yes: true},
		"D604": {breaks: has(".cursor/mcp.json", `"mcpproxy": {"url": "http://HERE/mcp"}`), words: []string{"call_tool_read: not known, should be: runs without asking"}, yes: true},
		"D605": {breaks: func(p *patient) { p.inHome(".kiro/settings/mcp.json", "{\n") }, words: []string{"mcp.json: line 2"}, heals: func(p *patient) { p.editor("{}") }},
		"D606": {breaks: has(".cursor/mcp.json", `"mcpproxy": {"url": "http://HERE/mcp"}, "direct": {"command": "true"}`), words: []string{"not through MCPProxy: direct"}, yes: true},
	}
}

func sickMachines() map[string]sick {
	filler := func(p *patient) string { return p.path("filler") }
	return map[string]sick{
		"D701": {needs: needsMounts, before: small(8 << 20), words: []string{"degraded"}, breaks: func(p *patient) {
			fill, err := os.OpenFile(filler(p), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			p.must(err)
			defer fill.Close()
			agent := p.legacy()
			eventually(p.t, "the log is degraded", func() error { // the daemon may free space
				_, _ = fill.Write(make([]byte, 64<<20)) // until the disk is full
				_, _ = agent.tryCall("call_tool_read", `{"name":"s:none"}`)
				if readiness(p.daemon) == nil {
					return errors.New("it can be written")
				}
				return nil
			})
		}, heals: func(p *patient) { p.must(os.Remove(filler(p))) }},
		"D702": {needs: needsSQLite, words: []string{"sqlite3"}, breaks: func(p *patient) {
			eventually(p.t, "the database exists", func() error {
				_, err := p.sqlite("SELECT version_id FROM goose_db_version WHERE version_id = 8")
				return err
			})
			cmd := exec.Command("sqlite3", "-cmd", ".timeout 5000", p.path("mcpproxy.db"))
			in, err := cmd.StdinPipe()
			p.must(err)
			out, err := cmd.StdoutPipe()
			p.must(err)
			p.must(cmd.Start())
			p.t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
			_, err = fmt.Fprintln(in, "BEGIN EXCLUSIVE; SELECT 1;")
			p.must(err)
			_, err = out.Read(make([]byte, 1)) // the lock is taken
			p.must(err)
			p.legacy().tryCall("call_tool_read", `{"name":"s:none"}`)
		}},
		"D703": {needs: needsSQLite, stays: true, words: []string{"were changed"}, breaks: func(p *patient) {
			eventually(p.t, "a record is changed", func() error {
				out, err := p.sqlite("UPDATE activity SET entry = zeroblob(length(entry)) WHERE seq = 1; SELECT changes()")
				if err != nil || strings.TrimSpace(out) != "1" {
					return fmt.Errorf("%v %s", err, out)
				}
				return nil
			})
			if code, _, stderr := p.cli("activity", "verify"); code != 1 || !strings.Contains(stderr, "Entry 1 was changed") {
				p.t.Errorf("verify: %d %s", code, stderr)
			}
		}},
		"D703 offline": {needs: needsSQLite, stays: true, words: []string{"Entry 1 was changed"}, breaks: func(p *patient) {
			eventually(p.t, "the log has a record", func() error {
				if out, err := p.sqlite("SELECT count(*) FROM activity WHERE seq = 1"); err != nil || strings.TrimSpace(out) != "1" {
					return fmt.Errorf("%v %s", err, out)
				}
				return nil
			})
			p.stop()
			_, err := p.sqlite("UPDATE activity SET entry = zeroblob(length(entry)) WHERE seq = 1")
			p.must(err)
		}},
		"D704": {needs: needsMounts, down: true, before: small(64 << 20), words: []string{"MB are free"}, heals: func(p *patient) {
			p.must(exec.Command("mount", "-o", "remount,size=2g", p.dataDir()).Run())
		}},
		"D705": {down: true, breaks: func(p *patient) {
			p.must(os.WriteFile(p.path("restrictions.log"), nil, 0o600))
			later := time.Now().Add(48 * time.Hour)
			p.must(os.Chtimes(p.path("restrictions.log"), later, later))
		}, words: []string{"was last written 4", " from now"}},
		"D706": {stays: true, words: []string{"presence"}},
		"D707": {breaks: func(p *patient) {
			p.must(os.RemoveAll(p.path("config-history")))
			p.must(os.WriteFile(p.path("config-history"), nil, 0o600))
			p.writeConfig(p.settings(`"tools_limit": 7`))
		}, words: []string{"could not be stored"}, heals: func(p *patient) {
			p.must(os.Remove(p.path("config-history")))
			p.writeConfig(p.settings(`"tools_limit": 8`))
			p.must(os.MkdirAll(p.path("config-history"), 0o700))
		}},
	}
}

// TestDoctorFindsNothing: the doctor reports no problem for a healthy installation, and changes nothing.
func TestDoctorFindsNothing(t *testing.T) {
	t.Parallel()
	p := newPatient(t, sick{config: server("one", ""), before: replaced("one")})
	p.awaitTools("s:echo")
	before := p.names()
	code, r := p.report()
	for _, c := range r.Checks {
		// The test servers have tools without hints that the scanner holds. The disk usage and the installed clients
		// depend on the machine.
		if c.State != doctor.OK && !slices.Contains([]string{"D501", "D502", "D704", "D706"}, c.Code) && c.Group != doctor.GroupClients {
			t.Errorf("%+v", c)
		}
	}
	if code != 0 || !r.Daemon {
		t.Errorf("exit code %d, %d problems", code, r.Bad)
	}
	if after := p.names(); !slices.Equal(before, after) {
		t.Errorf("files changed: before %v, after %v", before, after)
	}
	p.stop()
	before = p.names()
	_, r = p.report()
	if r.Daemon || !slices.Equal(before, p.names()) {
		t.Errorf("without a daemon, files changed: before %v, after %v", before, p.names())
	}
	for _, c := range r.Checks {
		if c.State == doctor.Bad && c.Code != "D101" && c.Code != "D704" {
			t.Errorf("%+v", c)
		}
	}
}

// names returns the files of the data directory with their modes, without the files that SQLite creates and removes
// next to an open database.
func (p *patient) names() (all []string) {
	p.t.Helper()
	entries, err := os.ReadDir(p.dataDir())
	p.must(err)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !strings.HasSuffix(e.Name(), "-shm") && !strings.HasSuffix(e.Name(), "-wal") {
			all = append(all, e.Name()+" "+info.Mode().String())
		}
	}
	return all
}
