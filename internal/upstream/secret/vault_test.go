package secret

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
)

func testVault(dir string, off bool) *Vault {
	v := OpenVault(dir, "logins", slog.New(slog.DiscardHandler))
	v.keyring.off = off
	return v
}

func mustHave(t *testing.T, v *Vault, key, want string) {
	t.Helper()
	got, err := v.Load(context.Background(), key)
	if err != nil || string(got) != want || want == "" && got != nil {
		t.Errorf("%s: %q (%v), want %q", key, got, err, want)
	}
}

func mustSave(t *testing.T, v *Vault, key, value string) {
	t.Helper()
	if err := v.Save(context.Background(), key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func TestSealedFile(t *testing.T) {
	dir := t.TempDir()
	v := testVault(dir, true)
	mustHave(t, v, "a", "")
	if err := v.Delete(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("looking made %v", left)
	}
	mustSave(t, v, "a", "secret-token")
	mustSave(t, v, "b", "other-token")
	mustSave(t, v, "a", "newer-token")
	v = testVault(dir, true)
	mustHave(t, v, "a", "newer-token")
	mustHave(t, v, "b", "other-token")
	if err := v.Delete(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	mustHave(t, v, "a", "")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v)", e.Name(), info.Mode(), err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || bytes.Contains(raw, []byte("token")) {
			t.Errorf("%s shows what is sealed (%v)", e.Name(), err)
		}
	}
}

// A key that other users could read is made private.
func TestKeyIsClosed(t *testing.T) {
	dir := t.TempDir()
	v := testVault(dir, true)
	mustSave(t, v, "a", "x")
	path := filepath.Join(dir, "logins.key")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	mustHave(t, v, "a", "x")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
}

// A file that cannot be decrypted is kept, and does not prevent other operations.
func TestUnreadableFile(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"broken file": func(dir string) error { return os.WriteFile(filepath.Join(dir, "logins.age"), []byte("x"), 0o600) },
		"lost key":    func(dir string) error { return os.Remove(filepath.Join(dir, "logins.key")) },
		"cut off": func(dir string) error {
			return os.Truncate(filepath.Join(dir, "logins.age"), 100)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			v := testVault(dir, true)
			mustSave(t, v, "a", "x")
			if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			if got, err := v.Load(context.Background(), "a"); err == nil || got != nil {
				t.Errorf("%q, %v", got, err)
			}
			mustSave(t, v, "b", "y")
			mustHave(t, v, "b", "y")
			if _, err := os.Stat(filepath.Join(dir, "logins.age"+".unreadable")); err != nil {
				t.Error(err)
			}
		})
	}
	dir := t.TempDir()
	v := testVault(dir, true)
	mustSave(t, v, "a", "x")
	if err := os.WriteFile(filepath.Join(dir, "logins.key"), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Save(context.Background(), "b", []byte("y")); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a key that is none: %v", err)
	}
}

func TestKeyring(t *testing.T) {
	keyring.MockInit()
	dir := t.TempDir()
	v := testVault(dir, false)
	mustHave(t, v, "a", "")
	mustSave(t, v, "a", "token")
	mustHave(t, v, "a", "token")
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("the file is used beside the keyring: %v", left)
	}
	mustHave(t, testVault(t.TempDir(), false), "a", "") // another data directory

	// While the keyring was unavailable, values were saved in the file. These values count.
	gone := testVault(dir, true)
	mustSave(t, gone, "a", "newer")
	mustHave(t, testVault(dir, false), "a", "newer")
	mustSave(t, v, "a", "newest")
	mustHave(t, testVault(dir, false), "a", "newest")
	if err := v.Delete(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	mustHave(t, v, "a", "")
}

func TestKeyringThatFails(t *testing.T) {
	keyring.MockInitWithError(keyring.ErrSetDataTooBig)
	dir := t.TempDir()
	v := testVault(dir, false)
	mustSave(t, v, "a", "token")
	mustHave(t, v, "a", "token")
	if v.keyring.off {
		t.Error("one value that is too large ends the keyring")
	}
	keyring.MockInitWithError(errors.New("no bus"))
	v = testVault(t.TempDir(), false)
	mustHave(t, v, "a", "")
	mustSave(t, v, "a", "token")
	mustHave(t, v, "a", "token")
	if !v.keyring.off {
		t.Error("a keyring that is not there is asked again")
	}
	t.Setenv(NoKeyringEnv, "1")
	if keyringAvailable() {
		t.Error("the keyring is used though it must not be")
	}
}
