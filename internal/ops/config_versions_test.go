package ops

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/config"
)

func kept(t *testing.T) *versionStore {
	return newVersionStore(filepath.Join(t.TempDir(), "config-history"), slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func applied(text string) config.AppliedText {
	return config.AppliedText{Data: []byte(text), Since: time.Now(), By: config.ByHand, Keys: []string{"tools_limit"}}
}

func TestHistoryIsKept(t *testing.T) {
	h := kept(t)
	for i := range 60 {
		h.addVersion(applied(fmt.Sprintf(`{"tools_limit": %d}`, i+1)))
	}
	all := h.listVersions()
	if len(all) != maxVersions || h.err != nil {
		t.Fatalf("%d versions are stored, %v", len(all), h.err)
	}
	for i, v := range all {
		want := fmt.Sprintf(`{"tools_limit": %d}`, 60-i)
		got, text, err := h.readVersion(v.ID, true)
		if err != nil || string(text) != want || got.ETag != config.ETag(text) || got.By != "file" || got.Bytes != len(text) || len(got.Keys) != 1 {
			t.Errorf("%+v %s, %v, want %s", got, text, err, want)
		}
		if i > 0 && v.ID >= all[i-1].ID {
			t.Errorf("%s comes after %s", v.ID, all[i-1].ID)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	entries, err := os.ReadDir(h.dir)
	if err != nil || len(entries) != maxVersions {
		t.Errorf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if info, err := os.Stat(h.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// The total size is limited, but the newest version is always kept.
func TestHistorySizeIsLimited(t *testing.T) {
	h := kept(t)
	for i := range 8 {
		h.addVersion(applied(fmt.Sprintf("{} // %d %s", i, strings.Repeat("x", 1<<20))))
	}
	if all := h.listVersions(); len(all) != 4 {
		t.Errorf("%d versions are stored", len(all))
	}
	if _, text, ok := h.newestVersion(); !ok || !strings.HasPrefix(string(text), "{} // 7 ") {
		t.Errorf("the newest is %.20s", text)
	}
}

// A clock that was set back, foreign files, changed files and files left by a crash cause no errors. A folder that
// cannot be used is reported.
func TestHistoryOfABadFolder(t *testing.T) {
	h := kept(t)
	h.addVersion(applied("{}"))
	later := applied(`{"tools_limit": 2}`)
	later.Since = later.Since.Add(-time.Hour)
	h.addVersion(later)
	all := h.listVersions()
	if len(all) != 2 || all[0].ETag != later.ETag() {
		t.Fatalf("%+v", all)
	}
	for name, text := range map[string]string{".next": `{"half`, "20260101T000000.000000000Z.jsonc": "{}", "29990101T000000.000000000Z.jsonc": `{"id":"other"}` + "\nx", "notes.txt": "mine"} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(h.filePath(all[1].ID), []byte(`{"id":"`+all[1].ID+`","etag":"x"}`+"\nchanged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.readVersion(all[1].ID, true); err == nil {
		t.Error("a changed text was returned without an error")
	}
	h.addVersion(applied(`{"tools_limit": 3}`))
	if v, text, ok := h.newestVersion(); !ok || string(text) != `{"tools_limit": 3}` || h.err != nil {
		t.Errorf("%+v %s %v", v, text, h.err)
	}
	again := newVersionStore(h.dir, h.logger) // as after a restart, with a clock that was set back
	again.addVersion(later)
	if _, text, ok := again.newestVersion(); !ok || string(text) != string(later.Data) {
		t.Errorf("the newest is %s", text)
	}
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	h.addVersion(applied("{}"))
	if _, _, ok := h.newestVersion(); !ok || h.lastWriteError() != nil {
		t.Errorf("a removed folder was not created again: %v", h.lastWriteError())
	}
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.addVersion(applied("{}"))
	if _, _, ok := h.newestVersion(); ok || h.lastWriteError() == nil {
		t.Error("a file in place of the folder is not reported")
	}
}

func TestClock(t *testing.T) {
	for clock, want := range map[time.Duration]CheckState{time.Hour: stateOK, 59*time.Minute + time.Second: stateOK, 10 * time.Hour: stateOK, 30 * time.Minute: stateWarn, -time.Hour: stateWarn} {
		if got := checkClock(clock, time.Hour); got.State != want {
			t.Errorf("the clock measures %s for one hour: %+v", clock, got)
		}
	}
}
