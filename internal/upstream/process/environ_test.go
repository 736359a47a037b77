//go:build unix

package process

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestEnvironment(t *testing.T) {
	all := []string{"PATH=/bin", "HOME=/h", "AWS_SECRET_ACCESS_KEY=x", "LC_ALL=C", "XDG_DATA_HOME=/d", "PATHS=1",
		"path=/lower", "LD_PRELOAD=evil", "TZ=UTC", "broken", "=x", "MCPPROXY_API_KEY=k"}
	got := serverEnvironment(all, map[string]string{"TOKEN": "t", "HOME": "/other", "EMPTY": ""}, "linux")
	want := []string{"EMPTY=", "HOME=/other", "LC_ALL=C", "PATH=/bin", "TOKEN=t", "TZ=UTC", "XDG_DATA_HOME=/d"}
	if !slices.Equal(got, want) {
		t.Errorf("linux: %q", got)
	}
	got = serverEnvironment([]string{"Path=C:\\", "SystemRoot=C:\\Windows", "SECRET=x"}, map[string]string{"PATH": "D:\\"}, "windows")
	if want := []string{"PATH=D:\\", "SystemRoot=C:\\Windows"}; !slices.Equal(got, want) {
		t.Errorf("windows: %q", got)
	}
}

func TestLookIn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tool")
	os.WriteFile(file, nil, 0o755)
	os.WriteFile(filepath.Join(dir, "text"), nil, 0o644)
	path := "relative:/nonexistent:" + dir
	for command, want := range map[string]string{"tool": file, "text": "", "absent": "", "./tool": ""} {
		if got := findInPath(command, path); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
