package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// configFile is the answer of GET /config.
type configFile struct {
	Path, Text, ETag, Error string
	InForceETag             string `json:"in_force_etag"`
	InForceSince            string `json:"in_force_since"`
	NeedsRestart            []string
	Mistakes                []mistake
	Settings                []struct {
		Key, Type, Doc       string
		Value, Default       json.RawMessage
		Allowed              []string
		Restart, Set, Locked bool
	}
}

type mistake struct {
	Line, Column       int
	Key, Message, Hint string
}

// textRefusal is a problem document about an invalid text.
type textRefusal struct {
	Code, Detail string
	Details      struct {
		ETag     string
		Mistakes []mistake
	}
}

// change sends a request with an ETag.
func (d *daemon) change(method, path, etag string, body any) (int, []byte) {
	d.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	req, err := http.NewRequest(method, "http://"+d.address+"/api/v1"+path, strings.NewReader(string(text)))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("X-API-Key", d.key())
	req.Header.Set("Content-Type", "application/json")
	if etag != "" {
		req.Header.Set("If-Match", `"`+etag+`"`)
	}
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return resp.StatusCode, answer
}

func (d *daemon) config() configFile {
	d.t.Helper()
	return decoded[configFile](d.t, must(d.t, 200)(d.rest("GET", "/config", "")))
}

func (d *daemon) file() string {
	d.t.Helper()
	text, err := os.ReadFile(d.configPath())
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

func must(t testing.TB, want int) func(int, []byte) []byte {
	return func(status int, body []byte) []byte {
		t.Helper()
		if status != want {
			t.Fatalf("status %d, want %d: %s", status, want, body)
		}
		return body
	}
}

func decoded[T any](t testing.TB, body []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

const settingsFile = `{
  // Work laptop
  "call_timeout": "2m", // long enough
  "log": {"level": "warn"},
  "mcpServers": {
    "off": {"command": "nothing", "enabled": false, "env": {"TOKEN": "hunter2-hunter2", "PORT": "8080"}}, // mine
  },
}
`

type versions struct {
	Total    int
	Versions []struct {
		ID, By, ETag string
		At           time.Time
		Keys         []string
		Bytes        int
	}
}

// A user changes single settings and the whole text. Comments and order stay, masked values are restored, and the log
// and the history contain every change.
func TestSettingsAreChanged(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, settingsFile)
	c := d.config()
	if strings.Contains(c.Text, "hunter2") || strings.Contains(c.Text, `"8080"`) || c.ETag != c.InForceETag || c.Error != "" || c.Path != d.configPath() {
		t.Errorf("%+v", c)
	}
	var keys []string
	for _, s := range c.Settings {
		keys = append(keys, s.Key)
		switch s.Key {
		case "call_timeout":
			if string(s.Value) != `"2m"` || !s.Set || s.Type != "duration" || s.Doc == "" || s.Locked {
				t.Errorf("%+v", s)
			}
		case "log.level":
			if string(s.Value) != `"warn"` || string(s.Default) != `"info"` || !s.Set || !slices.Contains(s.Allowed, "debug") {
				t.Errorf("%+v", s)
			}
		case "tools_limit":
			if string(s.Value) != "10" || s.Set || s.Type != "integer" {
				t.Errorf("%+v", s)
			}
		case "listen", "data_dir", "api_key": // listen and data_dir are set by flags
			if !s.Locked || !s.Restart {
				t.Errorf("%+v", s)
			}
		}
	}
	if len(keys) < 25 || slices.Contains(keys, "mcpServers") {
		t.Errorf("the settings are %v", keys)
	}

	set := map[string]any{"call_timeout": "5m", "tools_limit": 15, "log.level": nil, "intent_declaration.infer_hints": "off"}
	preview := decoded[struct {
		OK   bool
		Text string
	}](t, must(t, 200)(d.change("POST", "/config/validate", c.ETag, map[string]any{"text": c.Text, "set": set})))
	body := must(t, 200)(d.change("PATCH", "/config", c.ETag, map[string]any{"set": set}))
	want := `{
  // Work laptop
  "call_timeout": "5m", // long enough
  "log": {},
  "mcpServers": {
    "off": {"command": "nothing", "enabled": false, "env": {"TOKEN": "hunter2-hunter2", "PORT": "8080"}}, // mine
  },
  "tools_limit": 15,
  "intent_declaration": {"infer_hints": "off"},
}
`
	if got := d.file(); got != want {
		t.Fatalf("the file is\n%s\nwant\n%s", got, want)
	}
	next := decoded[configFile](t, body)
	if next.ETag == c.ETag || next.ETag != next.InForceETag || strings.Contains(next.Text, "hunter2") {
		t.Errorf("%+v", next)
	}
	if !preview.OK || preview.Text != next.Text {
		t.Errorf("the check predicted\n%s\nbut the file is\n%s", preview.Text, next.Text)
	}

	// Saving the same text again leaves the file unchanged byte for byte.
	must(t, 200)(d.change("PUT", "/config", next.ETag, map[string]any{"text": next.Text}))
	if got := d.file(); got != want {
		t.Fatalf("the file is\n%s\nwant\n%s", got, want)
	}
	edited := strings.Replace(next.Text, `"nothing"`, `"something"`, 1)
	check := decoded[struct {
		OK      bool
		Changes []struct {
			Key      string
			From, To json.RawMessage
		}
		NeedsRestart []string `json:"needs_restart"`
	}](t, must(t, 200)(d.change("POST", "/config/validate", "", map[string]any{"text": strings.Replace(edited, "{\n", "{\n\"activity_durability\": \"power\",\n", 1)})))
	if !check.OK || len(check.Changes) != 2 || check.Changes[1].Key != "mcpServers.off.command" || string(check.Changes[1].From) != `"nothing"` || !slices.Equal(check.NeedsRestart, []string{"activity_durability"}) {
		t.Errorf("%+v", check)
	}
	if d.file() != want {
		t.Error("a check has changed the file")
	}
	must(t, 200)(d.change("PUT", "/config", next.ETag, map[string]any{"text": edited}))
	if got := d.file(); got != strings.Replace(want, "nothing", "something", 1) {
		t.Errorf("the file is\n%s", got)
	}
	d.writeConfig(strings.Replace(want, "hunter2-hunter2", "another1-secret", 1) + "// by hand")
	eventually(t, "the manual edit is applied", func() error {
		if c := d.config(); c.ETag != c.InForceETag || !strings.Contains(c.Text, "by hand") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})

	// The history lists the applied versions, newest first. An old version cannot restore an old secret through the
	// placeholder of a new one.
	all := decoded[versions](t, must(t, 200)(d.rest("GET", "/config/history?limit=2", "")))
	if all.Total != 4 || len(all.Versions) != 2 || all.Versions[0].By != "file" || all.Versions[1].By != "admin" || !slices.Equal(all.Versions[1].Keys, []string{"mcpServers.off.command"}) {
		t.Errorf("%+v", all)
	}
	old := decoded[struct{ ID, Text string }](t, must(t, 200)(d.rest("GET", "/config/history/"+all.Versions[1].ID, "")))
	if strings.Contains(old.Text, "hunter2") || !strings.Contains(old.Text, "something") {
		t.Errorf("%s", old.Text)
	}
	status, body := d.change("PUT", "/config", d.config().ETag, map[string]any{"text": old.Text})
	if r := decoded[textRefusal](t, body); status != 422 || len(r.Details.Mistakes) != 1 || r.Details.Mistakes[0].Line != 6 || !strings.Contains(r.Details.Mistakes[0].Message, "does not represent a secret") {
		t.Errorf("%d %s", status, body)
	}
	must(t, 404)(d.rest("GET", "/config/history/20260101T000000.000000000Z", ""))
	must(t, 404)(d.rest("GET", "/config/history/..%2F..%2Fmcp_config.json", ""))

	records := string(must(t, 200)(d.rest("GET", "/activity?type=config_change", "")))
	for _, what := range []string{`"action":"set_config","detail":"call_timeout, intent_declaration.infer_hints, log.level, tools_limit"`, `"action":"replace_config","detail":"mcpServers.off.command"`} {
		if !strings.Contains(records, what) {
			t.Errorf("%s is not recorded: %s", what, records)
		}
	}
	if runtime.GOOS != "windows" {
		_ = filepath.WalkDir(filepath.Join(d.dataDir(), "config-history"), func(path string, e os.DirEntry, err error) error {
			info, _ := os.Stat(path)
			if err != nil || info == nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v %v", path, info, err)
			}
			return nil
		})
	}

	// After a restart, the configuration has been applied since the same time as before.
	since := d.config().InForceSince
	d.kill()
	d.start()
	if got := d.config().InForceSince; got != since {
		t.Errorf("applied since %s, before the restart since %s", got, since)
	}
}

// An invalid setting is rejected with its position, and nothing changes.
func TestSettingsAreRefused(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, settingsFile)
	c := d.config()
	for name, one := range map[string]struct {
		method, etag string
		body         any
		status       int
		code         string
		line         int
	}{
		"no etag":             {"PUT", "", map[string]any{"text": "{}"}, 400, "INVALID_PARAMETER", 0},
		"no etag for one":     {"PATCH", "", map[string]any{"set": map[string]any{"tools_limit": 3}}, 400, "INVALID_PARAMETER", 0},
		"another etag":        {"PUT", "0123", map[string]any{"text": "{}"}, 409, "CONFLICT", 0},
		"of none":             {"PATCH", "none", map[string]any{"set": map[string]any{"tools_limit": 3}}, 409, "CONFLICT", 0},
		"any etag":            {"PUT", "*", map[string]any{"text": "{}"}, 409, "CONFLICT", 0},
		"no JSON":             {"PUT", c.ETag, map[string]any{"text": "{\n\"a\" 1}"}, 422, "INVALID_CONFIG", 2},
		"unknown key":         {"PUT", c.ETag, map[string]any{"text": "{\n\n\"lisen\": 1}"}, 422, "INVALID_CONFIG", 3},
		"a wrong value":       {"PUT", c.ETag, map[string]any{"text": strings.Replace(c.Text, `"2m"`, "120", 1)}, 422, "INVALID_CONFIG", 3},
		"behind a secret":     {"PUT", c.ETag, map[string]any{"text": strings.Replace(c.Text, "}}, //", `}, "oops": 1}, //`, 1)}, 422, "INVALID_CONFIG", 6},
		"itself":              {"PUT", c.ETag, map[string]any{"text": "{\"mcpServers\":\n{\"me\": {\"url\": \"http://" + d.address + "/mcp\"}}}"}, 422, "INVALID_CONFIG", 2},
		"a placeholder":       {"PUT", c.ETag, map[string]any{"text": "{\n// ***masked:1***\n}"}, 422, "INVALID_CONFIG", 2},
		"a setting's value":   {"PATCH", c.ETag, map[string]any{"set": map[string]any{"tools_limit": 1000}}, 422, "INVALID_CONFIG", 0},
		"a setting's type":    {"PATCH", c.ETag, map[string]any{"set": map[string]any{"call_timeout": []int{1}}}, 422, "INVALID_CONFIG", 0},
		"no setting":          {"PATCH", c.ETag, map[string]any{"set": map[string]any{"tool_limit": 5}}, 400, "INVALID_PARAMETER", 0},
		"a server":            {"PATCH", c.ETag, map[string]any{"set": map[string]any{"mcpServers": map[string]any{}}}, 400, "INVALID_PARAMETER", 0},
		"the key":             {"PATCH", c.ETag, map[string]any{"set": map[string]any{"api_key": "0123456789abcdefgh"}}, 400, "INVALID_PARAMETER", 0},
		"what a flag says":    {"PATCH", c.ETag, map[string]any{"set": map[string]any{"listen": "127.0.0.1:1"}}, 400, "INVALID_PARAMETER", 0},
		"one of two is wrong": {"PATCH", c.ETag, map[string]any{"set": map[string]any{"tools_limit": 5, "queue_size": -1}}, 422, "INVALID_CONFIG", 0},
		"nothing":             {"PATCH", c.ETag, map[string]any{"set": map[string]any{}}, 400, "INVALID_PARAMETER", 0},
		"no member":           {"PATCH", c.ETag, map[string]any{}, 400, "INVALID_PARAMETER", 0},
	} {
		status, body := d.change(one.method, "/config", one.etag, one.body)
		r := decoded[textRefusal](t, body)
		if status != one.status || r.Code != one.code || strings.Contains(string(body), "hunter2") {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if one.line > 0 && (len(r.Details.Mistakes) == 0 || r.Details.Mistakes[0].Line != one.line) {
			t.Errorf("%s: %s", name, body)
		}
		if status == 409 && r.Details.ETag != c.ETag {
			t.Errorf("%s: the etag is %s, want %s", name, r.Details.ETag, c.ETag)
		}
		if name == "behind a secret" {
			line := strings.Split(strings.Replace(c.Text, "}}, //", `}, "oops": 1}, //`, 1), "\n")[5]
			if at := strings.Index(line, `"oops"`) + 1; r.Details.Mistakes[0].Column != at {
				t.Errorf("%s: column %d, want %d", name, r.Details.Mistakes[0].Column, at)
			}
		}
		if d.file() != settingsFile {
			t.Fatalf("%s: the file is\n%s", name, d.file())
		}
	}
	check := func(text string) (v struct {
		OK       bool
		Mistakes []mistake
		Warnings []string
	}) {
		return decoded[struct {
			OK       bool
			Mistakes []mistake
			Warnings []string
		}](t, must(t, 200)(d.change("POST", "/config/validate", "", map[string]any{"text": text})))
	}
	if v := check("{\n\"lisen\": 1,\n\"tools_limit\": 0}"); v.OK || len(v.Mistakes) != 2 || v.Mistakes[1].Line != 3 || v.Mistakes[1].Key != "tools_limit" {
		t.Errorf("%+v", v)
	}
	if v := check(`{"mcpServers": {"a": {"command": "x", "autoApprove": []}}}`); !v.OK || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "autoApprove") {
		t.Errorf("%+v", v)
	}
	// A file that was broken by hand is shown with its error, and the previous configuration stays applied.
	d.writeConfig(strings.Replace(settingsFile, `"off": {`, `"off": {"port": "hunter3-hunter3"`, 1))
	eventually(t, "the file is refused", func() error {
		c = d.config()
		if c.Error == "" || len(c.Mistakes) != 1 || c.Mistakes[0].Line != 6 || c.ETag == c.InForceETag {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	if strings.Contains(c.Text+c.Error, "hunter") || !strings.Contains(c.Text, `"call_timeout": "2m", // long enough`) {
		t.Errorf("%s\n%s", c.Error, c.Text)
	}
	must(t, 200)(d.change("PUT", "/config", c.ETag, map[string]any{"text": "{}"}))
	if c = d.config(); c.Error != "" || c.Text != "{}" || c.ETag != c.InForceETag {
		t.Errorf("%+v", c)
	}
}

var masks = regexp.MustCompile(`\*\*\*masked:[0-9]+\*\*\*`)

// No response about the configuration contains one of its secrets, whether the file is valid or not.
func TestConfigAnswersHoldNoSecret(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	secret := func() string {
		const of = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
		b := []byte("q7X")
		for range 12 {
			b = append(b, of[r.IntN(len(of))])
		}
		return string(b)
	}
	var made []string
	file := func() string {
		var all []any
		for range 11 {
			s := secret()
			made = append(made, s)
			all = append(all, s)
		}
		return fmt.Sprintf(`{"api_key": "%s", // %[1]s
  "mcpServers": {
    "a": {"command": "nothing", "args": ["--token", "%s", "--password=%s", "https://u:%s@h/?api_key=%s"], "env": {"A": "%s", "B": "x %[6]s"}, "enabled": false},
    "b": {"url": "https://u:%s@localhost:1/?token=%s", "headers": {"Authorization": "Bearer %s", "X": "%s"}, "enabled": false, "oauth": {"client_id": "i", "client_secret": "%s"}},
    "c": {"url": "http://localhost:1/", "enabled": false, "http_headers": {"X": "%[11]s"}},
  }
}`, all...)
	}
	texts := []string{file(), file()}
	d := startDaemon(t, `{}`)
	var said []string
	ask := func(_ int, body []byte) { said = append(said, string(body)) }
	look := func() {
		ask(d.rest("GET", "/config", ""))
		ask(d.rest("GET", "/config/history", ""))
		ask(d.rest("GET", "/diagnostics", ""))
		for _, v := range decoded[versions](t, must(t, 200)(d.rest("GET", "/config/history", ""))).Versions {
			ask(d.rest("GET", "/config/history/"+v.ID, ""))
		}
		for _, text := range texts {
			ask(d.change("POST", "/config/validate", "", map[string]any{"text": text}))
		}
		ask(d.rest("GET", "/activity?type=config_change", ""))
	}
	for i, text := range texts {
		d.writeConfig(text)
		eventually(t, "the file is applied", func() error {
			if c := d.config(); c.InForceETag != c.ETag {
				return fmt.Errorf("%+v", c)
			}
			return nil
		})
		look()
		c := d.config()
		if n := len(masks.FindAllString(c.Text, -1)); n < 12 {
			t.Errorf("%d placeholders in %s", n, c.Text)
		}
		ask(d.change("PUT", "/config", c.ETag, map[string]any{"text": c.Text}))
		ask(d.change("PUT", "/config", c.ETag, map[string]any{"text": strings.Replace(c.Text, "env", "envv", 1)}))
		ask(d.change("PUT", "/config", c.ETag, map[string]any{"text": strings.Replace(c.Text, ":", "", 1)}))
		ask(d.change("PATCH", "/config", c.ETag, map[string]any{"set": map[string]any{"tools_limit": 0}}))
		if d.file() != text {
			t.Fatalf("saved again, the file %d is\n%s\nwant\n%s", i, d.file(), text)
		}
		for _, broken := range []string{strings.Replace(text, ",", "", 1), strings.Replace(text, `"env": {`, `"env": {{`, 1), strings.Replace(text, `"headers"`, `"heders"`, 1), text[:len(text)/2]} {
			d.writeConfig(broken)
			eventually(t, "the file is refused", func() error {
				if c := d.config(); c.Error == "" {
					return fmt.Errorf("%+v", c)
				}
				return nil
			})
			look()
			ask(d.rest("GET", "/status", ""))
		}
	}
	for _, one := range said {
		for _, s := range made {
			if strings.Contains(one, s) {
				t.Fatalf("%s is in %s", s, one)
			}
		}
	}
}

// If several saves are based on the same text, one succeeds completely and the others get an error.
func TestConcurrentSaves(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, settingsFile)
	etag := d.config().ETag
	var wg sync.WaitGroup
	statuses := make([]int, 12)
	for i := range statuses {
		wg.Go(func() {
			if i%2 == 0 {
				statuses[i], _ = d.change("PUT", "/config", etag, map[string]any{"text": fmt.Sprintf(`{"tools_limit": %d}`, i+1)})
			} else {
				statuses[i], _ = d.change("PATCH", "/config", etag, map[string]any{"set": map[string]any{"tools_limit": i + 1}})
			}
		})
	}
	wg.Wait()
	won := slices.Index(statuses, 200)
	slices.Sort(statuses)
	if statuses[0] != 200 || statuses[1] != 409 {
		t.Fatalf("the answers are %v", statuses)
	}
	if got := d.file(); !strings.Contains(got, fmt.Sprintf(`"tools_limit": %d`, won+1)) {
		t.Errorf("save %d succeeded, but the file is %s", won, got)
	}
}

// After kill -9 during saves, the file contains the old or the new text, and the daemon starts with it. No confirmed
// save is lost.
func TestKilledWhileSaving(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"tools_limit": 1}`)
	said := 1
	for range 4 {
		done := make(chan int)
		etag := d.config().ETag
		go func() {
			acknowledged := said
			for i := said + 1; i <= 100; i++ {
				status, body := d.change("PUT", "/config", etag, map[string]any{"text": fmt.Sprintf(`{"tools_limit": %d} // %s`, i, strings.Repeat("x", 100_000))})
				if status != 200 {
					break
				}
				acknowledged = i
				var c configFile
				if json.Unmarshal(body, &c) != nil {
					break
				}
				etag = c.ETag
			}
			done <- acknowledged
		}()
		time.Sleep(time.Duration(30+rand.IntN(60)) * time.Millisecond) // at a random moment of a save
		d.kill()
		acknowledged := <-done
		text := d.file()
		var limit int
		if _, err := fmt.Sscanf(text, `{"tools_limit": %d}`, &limit); err != nil || limit != acknowledged && limit != acknowledged+1 || limit > 1 && len(text) < 100_000 {
			t.Fatalf("%d was acknowledged, the file is %.60s (%d bytes)", acknowledged, text, len(text))
		}
		d.start()
		c := d.config()
		if c.Error != "" || c.InForceETag != c.ETag {
			t.Fatalf("%.300s", c.Error)
		}
		all := decoded[versions](t, must(t, 200)(d.rest("GET", "/config/history", "")))
		if all.Versions[0].ETag != c.ETag {
			t.Errorf("%+v", all.Versions[0])
		}
		said = limit
	}
}

// Diagnostics name the problem and the command that fixes it.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("this test needs file modes")
	}
	d := startDaemon(t, `{}`)
	type check struct{ Code, Title, State, Detail, Fix string }
	look := func() map[string]check {
		all := map[string]check{}
		for _, c := range decoded[struct{ Checks []check }](t, must(t, 200)(d.rest("GET", "/diagnostics", ""))).Checks {
			all[c.Code] = c
		}
		return all
	}
	eventually(t, "no problem is reported", func() error { // after the approvals are loaded
		for code, c := range look() {
			if c.State != "ok" && code != "disk" || c.Detail == "" || c.Title == "" {
				return fmt.Errorf("%+v", c)
			}
		}
		return nil
	})
	if err := os.RemoveAll(filepath.Join(d.dataDir(), "config-history")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dataDir(), "config-history"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.writeConfig(`{"activity_durability": "power", "mcpServers": {"dead": {"command": "/nonexistent/command"}, "held": {"command": "x", "quarantined": true}}}`)
	for _, path := range []string{d.configPath(), filepath.Join(d.dataDir(), "api_key")} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all problems are reported", func() error {
		all := look()
		for code, want := range map[string]check{
			"config_file": {State: "warn", Fix: "chmod 600 " + d.configPath()}, "key_file": {State: "bad", Fix: "chmod 600 " + filepath.Join(d.dataDir(), "api_key")},
			"restart": {State: "warn", Detail: "activity_durability"}, "server": {State: "bad", Title: "Server dead", Fix: "mcpproxy upstream logs dead"},
			"approvals": {State: "warn", Detail: "1 (servers)", Fix: "mcpproxy approvals"}, "config_history": {State: "warn"}, "log": {State: "ok"}, "database": {State: "ok"},
		} {
			if got := all[code]; got.State != want.State || !strings.Contains(got.Title, want.Title) || !strings.Contains(got.Detail, want.Detail) || !strings.Contains(got.Fix, want.Fix) {
				return fmt.Errorf("%s: %+v", code, got)
			}
		}
		return nil
	})
	d.writeConfig(`{"lisen": 1}`)
	eventually(t, "the file is refused", func() error {
		if c := look()["config_file"]; c.State != "bad" || !strings.Contains(c.Detail, "lisen") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}
