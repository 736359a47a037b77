package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// fakeOpener replaces the desktop's program for opening files. It stores its arguments and the mode of the file, and
// keeps a copy of the file.
const fakeOpener = `#!/bin/sh
stat -c %%a "$1" > %[1]s/mode
cp "$1" %[1]s/page
printf '%%s\n' "$0" "$@" > %[1]s/new && mv %[1]s/new %[1]s/arguments
`

// ui starts `mcpproxy ui` on a desktop. The fake opener writes its arguments to the file "arguments" in dir.
func (d *daemon) ui(args ...string) (cmd *exec.Cmd, dir string, out *output) {
	d.t.Helper()
	return d.desktop(append([]string{"ui"}, args...)...)
}

// desktop does the same for any command.
func (d *daemon) desktop(args ...string) (cmd *exec.Cmd, dir string, out *output) {
	d.t.Helper()
	dir = d.t.TempDir()
	if err := mcptest.WriteProgram(filepath.Join(dir, "xdg-open"), fmt.Appendf(nil, fakeOpener, dir)); err != nil {
		d.t.Fatal(err)
	}
	cmd = exec.Command(binary, append(args, "--config", d.configPath(), "--data-dir", d.dataDir())...)
	cmd.Env = []string{"HOME=" + d.dir, "DISPLAY=:0", "PATH=" + dir + ":" + os.Getenv("PATH")}
	out = &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	return cmd, dir, out
}

func (d *daemon) awaitFile(path string) (text string) {
	d.t.Helper()
	eventually(d.t, path+" exists", func() error {
		raw, err := os.ReadFile(path)
		text = string(raw)
		return err
	})
	return text
}

// pages returns the existing files with sign-in codes.
func (d *daemon) pages() []string {
	d.t.Helper()
	all, err := filepath.Glob(filepath.Join(d.dataDir(), "sign-in", "*"))
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// The browser reads the code from a file that only its user can read, never from process arguments. The file is removed
// after the code was used.
func TestUIOpensSignedIn(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	cmd, dir, out := d.ui()
	arguments := d.awaitFile(filepath.Join(dir, "arguments"))
	page, mode := d.awaitFile(filepath.Join(dir, "page")), d.awaitFile(filepath.Join(dir, "mode"))
	link := regexp.MustCompile(`content="0; url=http://` + regexp.QuoteMeta(d.address) + `/ui/#([A-Z2-7]{26})"`).FindStringSubmatch(page)
	if link == nil || !strings.Contains(page, `<meta name="referrer" content="no-referrer">`) || strings.Contains(page, "<script") {
		t.Fatalf("the page is\n%s", page)
	}
	code := link[1]
	if mode != "600\n" {
		t.Errorf("the page has mode %s", mode)
	}
	lines := strings.Split(strings.TrimSpace(arguments), "\n")
	pages := d.pages()
	if len(pages) != 1 || len(lines) != 2 || lines[1] != pages[0] || strings.Contains(arguments, code) || strings.Contains(pages[0], code) {
		t.Errorf("got the arguments %q, the files %q", lines, pages)
	}
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
	if err != nil || bytes.Contains(own, []byte(code)) {
		t.Errorf("its own arguments are %q, %v", own, err)
	}
	if info, err := os.Stat(filepath.Dir(pages[0])); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
	d.signIn(code)
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "Signed in to http://"+d.address+"/ui/.") || strings.Contains(out.String(), code) {
		t.Errorf("%v\n%s", err, out)
	}
	if left := d.pages(); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The command can be interrupted while it waits for the browser, and leaves no file. If it was killed, the next run
// removes its file.
func TestUIRemovesItsFile(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	cmd, dir, _ := d.ui()
	d.awaitFile(filepath.Join(dir, "arguments"))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	left := d.pages()
	if len(left) != 1 {
		t.Fatalf("a killed command leaves %q", left)
	}
	old := time.Now().Add(-2 * time.Minute)
	if err := os.Chtimes(left[0], old, old); err != nil {
		t.Fatal(err)
	}
	cmd, dir, out := d.ui()
	d.awaitFile(filepath.Join(dir, "arguments"))
	if now := d.pages(); len(now) != 1 || now[0] == left[0] {
		t.Errorf("got the files %q, before %q", now, left)
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || len(d.pages()) != 0 {
		t.Errorf("interrupted: exit code %d, %q\n%s", code, d.pages(), out)
	}
}

// Without a browser the link is shown, but only in a terminal.
func TestUIShowsTheLinkOnATerminal(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	code, screen := d.onTerminal(t, "", "ui", "--print")
	link := regexp.MustCompile(`http://` + regexp.QuoteMeta(d.address) + `/ui/#([A-Z2-7]{26})\r`).FindStringSubmatch(screen)
	if code != 0 || link == nil || !strings.Contains(screen, "within a minute") {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	d.signIn(link[1])
	for _, args := range [][]string{{"ui", "--print"}, {"ui", "--print", "-o", "json"}} {
		code, stdout, stderr := d.cli(args...)
		if code != 2 || strings.Contains(stdout+stderr, "#") || !strings.Contains(stderr, "terminal") || !strings.Contains(stderr, "http://"+d.address+"/ui/") {
			t.Errorf("%q without a terminal: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	d.stop()
	if code, _, stderr := d.cli("ui"); code != 4 || !strings.Contains(stderr, "mcpproxy serve") {
		t.Errorf("without a daemon: exit code %d, %s", code, stderr)
	}
	d.start()
}

// To set a passkey, the command opens a page at localhost that is signed in.
func TestSettingAPasskeyOpensItsPage(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	cmd, dir, out := d.desktop("presence", "set", "passkey")
	d.awaitFile(filepath.Join(dir, "arguments")) // then the page is complete
	page := d.awaitFile(filepath.Join(dir, "page"))
	_, port, _ := strings.Cut(d.address, ":")
	if !regexp.MustCompile(`content="0; url=http://localhost:` + port + `/ui/settings\?part=passkey#([A-Z2-7]{26})"`).MatchString(page) {
		t.Errorf("the page is\n%s", page)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("it reports a sign-in:\n%s", out)
	}
	for _, args := range [][]string{{"passkey", "--anchor", "no base64!"}, {"passkey", "--anchor", "e30"}, {"none", "--anchor", "e30"}, {"finger"}} {
		if code, _, stderr := d.cli(append([]string{"presence", "set"}, args...)...); code != 2 {
			t.Errorf("%q ends with %d:\n%s", args, code, stderr)
		}
	}
}
