//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/testutil/volume"
)

// life is the life cycle of a package: it is installed, used, replaced by a later version, used again, and removed. The
// user's data is kept.
const life = `set -eu
start="chroot $root /usr/bin/env -i HOME=/home/me PATH=/usr/bin:/bin"
in_root() { $start "$@"; }
use() {
	$start mcpproxy serve --listen 127.0.0.1:0 >"$root/said" 2>&1 &
	daemon=$!
	trap 'kill $daemon 2>/dev/null || true' EXIT
	until in_root mcpproxy status >/dev/null 2>&1; do kill -0 $daemon; done
	in_root mcpproxy "$@"
	in_root mcpproxy call tool-read one:list_notes
	kill $daemon
	wait $daemon
}
mkdir -p "$root/home/me" "$root/tmp"
install_package "$old"
in_root mcpproxy version
for file in usr/share/man/man1/mcpproxy.1.gz usr/share/bash-completion/completions/mcpproxy usr/share/fish/vendor_completions.d/mcpproxy.fish "$zsh" usr/lib/systemd/user/mcpproxy.service "$licences/THIRD_PARTY_LICENSES"; do
	test -s "$root/$file" || { echo "no $file"; exit 1; }
done
use upstream add one -- /usr/bin/mcpproxy demo-upstream notes
install_package "$new"
in_root mcpproxy version
use upstream add two -- /usr/bin/mcpproxy demo-upstream notes
remove_package
if find "$root/usr" "$root/etc" "$root/var/lib/systemd" -iname '*mcpproxy*' ! -path "$root/var/lib/dpkg/*" 2>/dev/null | grep .; then echo "left behind"; exit 1; fi
grep -c '"command"' "$root/home/me/.mcpproxy/mcp_config.json"
test -s "$root/home/me/.mcpproxy/api_key"
`

// packageFiles are the packages of one format, of an older and a later version.
func packageFiles(t *testing.T, pattern string) []string {
	t.Helper()
	volume.SkipUnlessNightly(t, volume.Packages)
	if os.Getenv("CI") != "true" {
		t.Skip("it takes a minute and root; CI=true runs it")
	}
	first := madeRelease(t)
	later := first
	later.Version, later.out = "1.3.0", t.TempDir()
	if err := later.make(t.Context(), []target{{"linux", "amd64"}}); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, dir := range []string{first.out, later.out} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		files = append(files, found[0])
	}
	return files
}

// lives runs the life of a package in a root file system.
func lives(t *testing.T, root string, files []string, functions string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", functions+life)
	cmd.Env = append(os.Environ(), "root="+root, "old="+files[0], "new="+files[1])
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		said, _ := os.ReadFile(filepath.Join(root, "said"))
		t.Fatalf("%v\n%s\n%s", err, out, said)
	}
	t.Logf("%s", out)
	for _, want := range []string{"mcpproxy 1.2.3 (", "mcpproxy 1.3.0 (", "Added one", "Added two", "groceries"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
	if !strings.HasSuffix(string(out), "\n2\n") {
		t.Errorf("the configuration is not what it was:\n%s", out)
	}
}

func TestDebianPackage(t *testing.T) {
	files, root := packageFiles(t, "*.deb"), t.TempDir()
	if out, err := exec.Command("debootstrap", "--variant=minbase", "bookworm", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	lives(t, root, files, `
zsh=usr/share/zsh/vendor-completions/_mcpproxy licences=usr/share/doc/mcpproxy
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
rm -f "$root/etc/dpkg/dpkg.cfg.d/docker" # nothing is left out
install_package() { cp "$1" "$root/tmp/p.deb"; chroot "$root" dpkg --install /tmp/p.deb; rm "$root/tmp/p.deb"; }
remove_package() { chroot "$root" dpkg --purge mcpproxy; }
`)
}

func TestRPMPackage(t *testing.T) {
	files, root := packageFiles(t, "*.rpm"), t.TempDir()
	if out, err := exec.Command("rpm", "--root", root, "--initdb").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The program itself needs nothing from the system, but the script does.
	for _, tool := range []string{"env"} {
		if err := copyTool(root, tool); err != nil {
			t.Fatal(err)
		}
	}
	lives(t, root, files, `
zsh=usr/share/zsh/site-functions/_mcpproxy licences=usr/share/licenses/mcpproxy
install_package() { rpm --root "$root" --upgrade --verbose "$1"; rpm --root "$root" --verify mcpproxy; }
remove_package() { rpm --root "$root" --erase --verbose mcpproxy; }
`)
}

// copyTool copies a program of this system, with its libraries.
func copyTool(root, tool string) error {
	path, err := exec.LookPath(tool)
	if err != nil {
		return err
	}
	libraries, err := exec.Command("ldd", path).Output()
	if err != nil {
		return fmt.Errorf("ldd %s: %w", path, err)
	}
	files := []string{path}
	for word := range strings.FieldsSeq(string(libraries)) {
		if filepath.IsAbs(word) {
			files = append(files, word)
		}
	}
	for _, file := range files {
		to := filepath.Join(root, file)
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o755); err != nil {
			return err
		}
	}
	return nil
}
