package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

// people is a fake for GatherOptions.ExamineClients.
type people struct {
	all  []doctor.ClientFacts
	err  error
	hang chan struct{} // if set, examine blocks until it is closed
	at   string        // the URL that examine received
}

func (p *people) examine(base string) ([]doctor.ClientFacts, error) {
	if p.hang != nil {
		<-p.hang
	}
	p.at = base
	return p.all, p.err
}

func options(t *testing.T, config string) doctor.GatherOptions {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp_config.json")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return doctor.GatherOptions{
		Version: "1.2.3", ConfigPath: path, DataDir: dir, Socket: filepath.Join(dir, "mcpproxy.sock"), Now: time.Now,
		Lookup: func(string) (string, bool) { return "", false },
		Ask:    func(context.Context) (*doctor.DaemonFacts, error) { return nil, doctor.ErrAbsent },
	}
}

func examine(t *testing.T, f *doctor.Facts, only ...string) doctor.Report {
	t.Helper()
	r, err := doctor.RunChecks(f, only)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestClients checks the findings for broken client setups, and that a correct setup has none.
func TestClients(t *testing.T) {
	well := doctor.ClientFacts{ClientView: ops.ClientView{ID: "cursor", Name: "Cursor", Path: "/home/me/.cursor/mcp.json", LeadsTo: "http://127.0.0.1:18080/mcp"}}
	with := func(change func(c *doctor.ClientFacts)) []doctor.ClientFacts {
		c := well
		change(&c)
		return []doctor.ClientFacts{c}
	}
	for code, c := range map[string]struct {
		clients []doctor.ClientFacts
		what    []string
		command string
	}{
		"D601": {with(func(c *doctor.ClientFacts) { c.LeadsTo = "" }), []string{"Cursor"}, "mcpproxy connect --all"},
		"D602": {with(func(c *doctor.ClientFacts) { c.LeadsTo, c.Foreign = "http://127.0.0.1:9/mcp", true }), []string{"Cursor", ".cursor/mcp.json", "http://127.0.0.1:9/mcp"}, "mcpproxy connect cursor"},
		"D603": {with(func(c *doctor.ClientFacts) { c.Missing = "/old/mcpproxy" }), []string{"Cursor", "/old/mcpproxy"}, "mcpproxy connect cursor"},
		"D604": {with(func(c *doctor.ClientFacts) {
			c.Lanes = []doctor.LaneDeviation{{Name: "read", Does: "asks", Want: "runs without asking", Rule: "no rule in settings.json"}}
		}), []string{"read: asks, should be: runs without asking (no rule in settings.json)"}, "mcpproxy permissions cursor --write"},
		"D604 denied": {with(func(c *doctor.ClientFacts) {
			c.Lanes = []doctor.LaneDeviation{{Name: "read", Does: "is denied", Want: "runs without asking", Rule: "enabled: false", Denied: true}}
		}), []string{"read: is denied"}, "mcpproxy connect cursor"},
		"D605": {with(func(c *doctor.ClientFacts) {
			c.Broken = []string{"/home/me/.cursor/mcp.json: line 3, column 1: the file ends too early"}
		}), []string{"Cursor", "mcp.json: line 3"}, `"${EDITOR:-vi}" +3 /home/me/.cursor/mcp.json`},
		"D606": {with(func(c *doctor.ClientFacts) { c.Direct = []string{"github", "files"} }), []string{"Cursor", "github, files"}, "mcpproxy upstream import cursor --remove"},
	} {
		t.Run(code, func(t *testing.T) {
			code, _, denied := strings.Cut(code, " ")
			o := options(t, `{"listen": "127.0.0.1:18080"}`)
			o.ExamineClients = (&people{all: c.clients}).examine
			r := examine(t, doctor.GatherFacts(t.Context(), o), code)
			if len(r.Checks) != 1 || r.Checks[0].State == doctor.OK || (r.Checks[0].State == doctor.Note) != denied || r.Checks[0].Command != c.command || slices.ContainsFunc(c.what, func(w string) bool { return !strings.Contains(r.Checks[0].What, w) }) {
				t.Errorf("%+v", r)
			}
			seen := &people{all: []doctor.ClientFacts{well}}
			o.ExamineClients = seen.examine
			if r := examine(t, doctor.GatherFacts(t.Context(), o), code); len(r.Checks) != 1 || r.Checks[0].State != doctor.OK {
				t.Errorf("correct client: %+v", r)
			}
			if seen.at != "http://127.0.0.1:18080" {
				t.Errorf("examine got the URL %s", seen.at)
			}
			o.ExamineClients = (&people{err: errors.New("no")}).examine
			if r := examine(t, doctor.GatherFacts(t.Context(), o), code); len(r.Checks) != 1 || r.Checks[0].State != doctor.Skipped {
				t.Errorf("failed examination: %+v", r)
			}
		})
	}
}

// TestLaneDeviationsAreWrittenOnce: each deviation is in the finding once.
func TestLaneDeviationsAreWrittenOnce(t *testing.T) {
	c := doctor.ClientFacts{ClientView: ops.ClientView{ID: "cursor", Name: "Cursor", Path: "/p", LeadsTo: "http://127.0.0.1:8080/mcp"}}
	for n, name := range []string{"read", "write"} {
		c.Lanes = append(c.Lanes, doctor.LaneDeviation{Name: name, Does: "asks", Want: "runs without asking", Rule: "no rule"})
		f := examine(t, &doctor.Facts{ClientsKnown: true, Clients: []doctor.ClientFacts{c}}, "D604").Checks[0]
		if said := strings.Join(append(f.Lines, f.What), "\n"); strings.Count(said, "should be") != n+1 {
			t.Errorf("%s", said)
		}
	}
}

// TestNoDatabaseYet: before the first start there is nothing to read, and no daemon prevents it.
func TestNoDatabaseYet(t *testing.T) {
	o := options(t, `{}`)
	o.Thorough = true
	for _, c := range examine(t, doctor.GatherFacts(t.Context(), o), "D212", "D703").Checks {
		if c.State != doctor.Skipped || c.What != "There is no database yet." {
			t.Errorf("%+v", c)
		}
	}
}

// TestAuthorityOfAServer: a server that rejects a certificate because of its authority is distinguished from another crash. The
// message names the variable that the server does not inherit.
func TestAuthorityOfAServer(t *testing.T) {
	for said, want := range map[string]bool{
		"npm error code SELF_SIGNED_CERT_IN_CHAIN":                                         true,
		"TypeError: fetch failed … code: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'":              true,
		"ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]":                   true,
		"tls: failed to verify certificate: x509: certificate signed by unknown authority": true,
		"KeyError: 'SSL_CERT_DIR'":                                                         false,
	} {
		f := &doctor.Facts{Flags: " --data-dir /data", Daemon: &doctor.DaemonFacts{}, Servers: []doctor.ServerFacts{{ServerRow: ops.ServerRow{ServerView: ops.ServerView{Name: "s", Command: "npx", Enabled: true, Failure: upstream.Exited, LastError: "exit status 1"}}, Live: true, Lines: []string{said}}}}
		got := examine(t, f, "D415").Checks[0]
		if got.State != doctor.Bad || strings.Contains(got.Do, "`mcpproxy --data-dir /data upstream set s --env NODE_EXTRA_CA_CERTS=FILE`") != want || got.Command != "mcpproxy --data-dir /data upstream restart s" {
			t.Errorf("%s: %+v", said, got)
		}
	}
}

// TestChecksAreBounded checks that a part that hangs is named and that all other checks run.
func TestChecksAreBounded(t *testing.T) {
	o := options(t, `{}`)
	o.Now = func() time.Time { return time.Now().Add(100 * 365 * 24 * time.Hour) } // after the real times of the files, because synctest fakes the clock
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		o.ExamineClients = (&people{hang: hang}).examine
		o.Ask = func(context.Context) (*doctor.DaemonFacts, error) { <-hang; return nil, doctor.ErrAbsent }
		began := time.Now()
		f := doctor.GatherFacts(t.Context(), o)
		if took := time.Since(began); took > doctor.TotalTime || took < doctor.PartTime {
			t.Errorf("it took %s", took)
		}
		if !slices.Equal(f.TimedOut, []string{"the daemon", "the clients"}) {
			t.Errorf("timed-out parts: %v", f.TimedOut)
		}
		r := examine(t, f, "D708", "D205")
		if r.Warn != 2 || r.Checks[1].Subject != "the daemon" || !strings.Contains(r.Checks[1].What, "within 10s") || r.Checks[0].State != doctor.OK {
			t.Errorf("%+v", r)
		}
	})
}

// TestChangedLog checks that a failed verification of the log is reported.
func TestChangedLog(t *testing.T) {
	f := &doctor.Facts{DataDir: "/data", Daemon: &doctor.DaemonFacts{Status: ops.Status{Activity: activity.Health{Verified: &activity.Verified{At: time.Unix(0, 0).UTC()}}}}}
	if r := examine(t, f, "log-changed"); r.Bad != 1 || r.Checks[0].Command != "cp -a /data /data-copy" || !strings.Contains(r.Checks[0].What, "1970") {
		t.Errorf("%+v", r)
	}
	f.Daemon.Activity.Verified.OK = true
	if r := examine(t, f, "log-changed"); r.Bad != 0 {
		t.Errorf("%+v", r)
	}
}

// TestDegradedLog checks the advice for a degraded log. For a database file, it names free disk space, whatever error
// the log reports. For a database server, it names the connection.
func TestDegradedLog(t *testing.T) {
	for _, shared := range []bool{false, true} {
		f := &doctor.Facts{DataDir: "/data", Shared: shared, Daemon: &doctor.DaemonFacts{Status: ops.Status{Activity: activity.Health{
			Degraded: true, Message: "the database is not available, records wait in the spool: no space left on device"}}}}
		r := examine(t, f, "D701")
		if got := r.Checks[0].Do; strings.HasPrefix(got, "Free space on the disk of /data") == shared || strings.Contains(got, "can be reached") != shared {
			t.Errorf("shared is %v: %s", shared, got)
		}
	}
}

// TestOrder checks that the same facts give the same report, sorted by code.
func TestOrder(t *testing.T) {
	o := options(t, `{"mcpServers": {"b": {"command": "/none"}, "a": {"command": "/none"}, "c": {"command": "/none", "args": ["x"]}}}`)
	f := doctor.GatherFacts(t.Context(), o)
	first := examine(t, f)
	if again := examine(t, f); !sameReport(first, again) {
		t.Error("the second report differs from the first")
	}
	var codes, subjects []string
	for _, c := range first.Checks {
		codes = append(codes, c.Code)
		if c.Code == "D401" {
			subjects = append(subjects, c.Subject)
		}
	}
	if !slices.IsSorted(codes) || !slices.Equal(subjects, []string{"a", "b", "c"}) {
		t.Errorf("%v, %v", codes, subjects)
	}
	if r := examine(t, f, "D706", "d101"); len(r.Checks) != 2 || r.Checks[0].Code != "D101" {
		t.Errorf("%+v", r)
	}
	if _, err := doctor.RunChecks(f, []string{"D1"}); problem.From(err).Code != problem.Usage {
		t.Error(err)
	}
}

func sameReport(a, b doctor.Report) bool {
	return reflect.DeepEqual(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b))
}

// TestCodesAreUnique checks that no two checks have the same code or name.
func TestCodesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range doctor.CodesAndNames() {
		if seen[c] {
			t.Errorf("%s occurs twice", c)
		}
		seen[c] = true
	}
	if len(seen) < 60 {
		t.Errorf("got only %d codes and names", len(seen))
	}
}

// TestQuoted checks that a shell reads the quoted words unchanged.
func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{"a-b_c/1.0": "a-b_c/1.0", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "x;y": "'x;y'", "~": "'~'"} {
		if got := ops.ShellQuote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// TestFixLeavesOtherFiles checks that a fix changes neither a foreign file in the data directory nor the socket of a
// daemon that is starting.
func TestFixLeavesOtherFiles(t *testing.T) {
	o := options(t, "{}")
	if err := os.Chmod(o.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.WriteFile(elsewhere, nil, 0o644), os.Symlink(elsewhere, filepath.Join(o.DataDir, "mcpproxy.db-link"))); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	r := examine(t, doctor.GatherFacts(t.Context(), o))
	lock, err := ondisk.LockFile(filepath.Join(o.DataDir, "daemon.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, fix := range doctor.ApplyFixes(r) {
		if fix.Code == "D105" && fix.Error == "" || fix.Code == "D208" {
			t.Errorf("%+v", fix)
		}
	}
	info, err := os.Stat(elsewhere)
	if _, socket := os.Lstat(o.Socket); err != nil || info.Mode().Perm() != 0o644 || socket != nil {
		t.Errorf("%v, %v, %v", err, info.Mode(), socket)
	}
}

// TestServersInTheFile checks that a problem of a server in the file is reported with the server's name.
func TestServersInTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		code, config  string
		what, command string
	}{
		"a token in env": {"D308", `{"mcpServers": {"gh": {"command": "x", "env": {"GITHUB_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}}}}`,
			"Server gh has a credential in plain text", "mcpproxy secrets set GITHUB_TOKEN && mcpproxy upstream set gh --env 'GITHUB_TOKEN=${keyring:GITHUB_TOKEN}'"},
		"a reference": {"D308", `{"mcpServers": {"gh": {"command": "x", "env": {"GITHUB_TOKEN": "${keyring:GITHUB_TOKEN}", "MODE": "fast"}}}}`, "", ""},
		"a header": {"D308", `{"mcpServers": {"r": {"url": "https://e.example/mcp", "headers": {"X-Api-Key": "0123456789abcdefghijABCDEFGHIJ012345"}}}}`,
			"headers.X-Api-Key", "mcpproxy secrets set R_X_API_KEY && mcpproxy upstream set r --header 'X-Api-Key: ${keyring:R_X_API_KEY}'"},
		"an unset variable": {"D303", `{"mcpServers": {"my.gh": {"command": "x", "env": {"A": "${env:UNSET_ONE}"}}}}`, "Server my.gh: ", "read -r UNSET_ONE && export UNSET_ONE && mcpproxy serve"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, c.config)
			r := examine(t, doctor.GatherFacts(t.Context(), o), c.code)
			got := r.Checks[0]
			if (got.State == doctor.OK) != (c.what == "") || !strings.Contains(got.What, c.what) || got.Command != c.command || strings.Contains(fmt.Sprint(r), "ABCDEFGHIJ012345") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestMissingFileIsNotAFault checks that no finding tells a new user to edit a file that does not exist.
func TestMissingFileIsNotAFault(t *testing.T) {
	o := options(t, `{}`)
	if err := os.Remove(o.ConfigPath); err != nil {
		t.Fatal(err)
	}
	if got := examine(t, doctor.GatherFacts(t.Context(), o), "D306").Checks[0]; got.State != doctor.OK {
		t.Errorf("%+v", got)
	}
}

// TestNoiseIsNotSlow checks that a server that writes text to its stdout is not reported as slow.
func TestNoiseIsNotSlow(t *testing.T) {
	s := doctor.ServerFacts{ServerRow: ops.ServerRow{ServerView: ops.ServerView{Name: "s", Command: "x", Enabled: true, Failure: upstream.TimedOut, LastError: "no answer in 30s"}}, Live: true}
	f := &doctor.Facts{Daemon: &doctor.DaemonFacts{}, Servers: []doctor.ServerFacts{s}}
	for code, bad := range map[string]bool{"D414": true, "D418": false} {
		if got := examine(t, f, code).Checks[0]; (got.State == doctor.Bad) != bad {
			t.Errorf("quiet: %+v", got)
		}
	}
	f.Servers[0].StdoutNoise = []string{"Listening on port 3000"}
	for code, bad := range map[string]bool{"D414": false, "D418": true} {
		if got := examine(t, f, code).Checks[0]; (got.State == doctor.Bad) != bad {
			t.Errorf("noisy: %+v", got)
		}
	}
}

// TestUnusedPatterns checks that a pattern that matches no tool is reported.
func TestUnusedPatterns(t *testing.T) {
	f := &doctor.Facts{Daemon: &doctor.DaemonFacts{}, Servers: []doctor.ServerFacts{{ServerRow: ops.ServerRow{ServerView: ops.ServerView{Name: "s", Enabled: true, State: "ready", ToolCount: 3}}, Live: true, Idle: []string{"delte_*"}}}}
	if got := examine(t, f, "D504").Checks[0]; got.State != doctor.Warn || !strings.Contains(got.What, "delte_*") || got.Command != "mcpproxy tools list --server s" {
		t.Errorf("%+v", got)
	}
}
