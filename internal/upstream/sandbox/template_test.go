package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/upstream/process"
)

func commandForTest() process.Command {
	return process.Command{Name: "/bin/sh", Args: []string{"-c", "true"}}
}

// write writes a file of an installation, and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNpxTemplate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a sandbox needs Linux")
	}
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	npx := write(t, filepath.Join(bin, "npx"), "")
	node := write(t, filepath.Join(bin, "node"), "")
	env := []string{"HOME=" + home, "PATH=" + bin}
	args := []string{"-y", "@scope/server@1.2.3", "--root", "/x"}
	l, err := resolveLaunch("npx", args, env, "")
	if err != nil || !slices.Equal(l.install, []string{npx, "--yes", "--ignore-scripts", "--package=@scope/server@1.2.3", "-c", "exit 0"}) {
		t.Fatalf("%+v, %v", l, err)
	}
	// The folder is the one that npx 11 uses. The package is installed now.
	folder := filepath.Join(home, ".npm", "_npx", "d31b60f46e71f809")
	write(t, filepath.Join(folder, "node_modules", "@scope/server", "package.json"), `{"bin": {"other": "other.js", "server": "dist/index.js"}}`)
	write(t, filepath.Join(folder, "node_modules", "@scope/server", "dist", "index.js"), "#!/usr/bin/env node\n")
	script := filepath.Join(folder, "node_modules", ".bin", "server")
	if err := os.MkdirAll(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../@scope/server/dist/index.js", script); err != nil {
		t.Fatal(err)
	}
	l, err = resolveLaunch("npx", args, env, "")
	if err != nil || l.install != nil || l.program != node || !slices.Equal(l.args, []string{script, "--root", "/x"}) || !slices.Contains(l.reads, folder) {
		t.Errorf("%+v, %v", l, err)
	}
	// A pin is compared with what npm has verified.
	lock := filepath.Join(folder, "package-lock.json")
	write(t, lock, `{"packages": {"node_modules/@scope/server": {"version": "1.2.3", "integrity": "sha512-good"}}}`)
	for text, want := range map[string]bool{"": true, "npm:@scope/server@1.2.3#sha512-good": true, "npm:@scope/server@1.2.3#sha512-other": false, "npm:@scope/server@1.2.4#sha512-good": false} {
		if _, err := (plan{Command: "npx", Args: args, Pin: text}).resolved(env, ""); (err == nil) != want {
			t.Errorf("pin %q: %v", text, err)
		}
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := (plan{Command: "npx", Args: args, Pin: "npm:@scope/server@1.2.3#sha512-good"}).resolved(env, ""); err == nil {
		t.Error("a package whose integrity is not known is started")
	}
	for _, c := range [][]string{{"-y", "./server"}, {"-c", "x"}, {"github:a/b"}, {"a/b"}, {"-y"}} {
		if l, err := resolveLaunch("npx", c, env, ""); err == nil {
			t.Errorf("%q: %+v", c, l)
		}
	}
}

func TestOtherRunnersAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bunx", "docker", "sh"} {
		write(t, filepath.Join(dir, name), "")
	}
	for _, words := range [][]string{{"bunx", "x"}, {"docker", "run", "x"}, {"sh", "-c", "npx -y x"}} {
		if l, err := resolveLaunch(words[0], words[1:], []string{"PATH=" + dir}, ""); err == nil || !strings.Contains(err.Error(), "container") {
			t.Errorf("%q: %+v, %v", words, l, err)
		}
	}
}

// TestContainer checks the command line with a program in place of the engine.
func TestContainer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the engine of this test is a script")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	told := filepath.Join(dir, "told")
	write(t, filepath.Join(dir, "docker"), "#!/bin/sh\nprintf '%s\\n' \"$@\" >> "+told+"\nprintf 'TOKEN is %s\\n' \"$TOKEN\" >> "+told+"\n")
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &System{private: []string{filepath.Join(dir, "private")}, probe: func() machineSupport { return machineSupport{os: "darwin"} }}
	c := process.Command{Name: "node", Args: []string{"server.js", "--x"}, Env: map[string]string{"PATH": dir, "TOKEN": "s3cret"}}
	wrapped, err := s.Wrap(c, Rules{Mode: Container, Image: "node:22", Read: []string{dir}, Write: []string{data}}, "")
	if err != nil {
		t.Fatal(err)
	}
	launch := process.NewLauncher("", nil)
	defer launch.Close()
	p, err := process.Start(wrapped, launch)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	text, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, want := range [][]string{{"run", "--rm", "--interactive", "--init"}, {"--read-only"}, {"--cap-drop", "ALL", "--security-opt", "no-new-privileges"}, {"--network", "none"},
		{"--mount", "type=bind,source=" + dir + ",target=" + dir + ",readonly", "--mount", "type=bind,source=" + data + ",target=" + data, "--env", "TOKEN"},
		{"node:22", "node", "server.js", "--x"}, {"TOKEN is s3cret", "rm", "--force"}} {
		if !strings.Contains("\n"+strings.Join(lines, "\n")+"\n", "\n"+strings.Join(want, "\n")+"\n") {
			t.Errorf("%q is missing in %q", want, lines)
		}
	}
	if slices.ContainsFunc(lines[:len(lines)-6], func(l string) bool { return strings.Contains(l, "s3cret") && !strings.HasPrefix(l, "TOKEN is") }) {
		t.Errorf("a secret is in the arguments: %q", lines)
	}
	if c.Env["PATH"] = t.TempDir(); Engine(c.Env["PATH"]) == "" {
		if _, err := s.Wrap(c, Rules{Mode: Container, Image: "i"}, ""); err == nil || !strings.Contains(err.Error(), "Docker or Podman") {
			t.Errorf("%v", err)
		}
	}
	if wrapped, err = s.Wrap(process.Command{Env: map[string]string{"PATH": dir}}, Rules{Mode: Container, Image: "i", Network: AllNetwork}, ""); err != nil || slices.Contains(wrapped.Args, "--network") {
		t.Errorf("%v, %v", wrapped.Args, err)
	}
}

// TestPlanIsReadable checks that the plan has the same content after its way to the process.
func TestPlanIsReadable(t *testing.T) {
	p := plan{Rules: Rules{Mode: On, Read: []string{"/a"}}, Tmp: "/t", Command: "x", Args: []string{"\"'<é"}, Namespace: true}
	var back plan
	if err := json.Unmarshal([]byte(p.arguments()[1]), &back); err != nil || back.Args[0] != p.Args[0] || !back.Rules.Equal(p.Rules) || !back.Namespace {
		t.Errorf("%+v, %v", back, err)
	}
}
