package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// mcpRegistry is an MCP registry with recorded entries, in the documented form of its API.
type mcpRegistry struct {
	*httptest.Server
	entries map[string]json.RawMessage // by name
}

func startMCPRegistry(t testing.TB) *mcpRegistry {
	t.Helper()
	var all []struct {
		raw    json.RawMessage
		Server struct{ Name string } `json:"server"`
	}
	text, err := os.ReadFile("../upstream/registry/testdata/entries.json")
	var raws []json.RawMessage
	if err == nil {
		err = json.Unmarshal(text, &raws)
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) != 200 {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	r := &mcpRegistry{entries: map[string]json.RawMessage{}}
	for i, e := range all {
		r.entries[e.Server.Name] = raws[i]
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		path, err := url.PathUnescape(q.URL.EscapedPath())
		name, ok := strings.CutPrefix(path, "/v0.1/servers/")
		if name, _, _ = strings.Cut(name, "/versions/"); ok && err == nil && r.entries[name] != nil {
			_, _ = w.Write(r.entries[name])
			return
		}
		if ok {
			http.NotFound(w, q)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"servers": raws[:60], "metadata": map[string]any{"count": 60}})
	}))
	t.Cleanup(r.Close)
	return r
}

// registryEnv is a daemon with a registry, whose runners and proxy record what is started and contacted.
type registryEnv struct {
	*daemon
	registry *mcpRegistry
	started  string // the file in which the runners write their arguments

	mu        sync.Mutex // guards contacted
	contacted []string   // hosts
}

func newRegistryEnv(t *testing.T) *registryEnv {
	t.Helper()
	e := &registryEnv{registry: startMCPRegistry(t), started: filepath.Join(t.TempDir(), "started")}
	bin := t.TempDir()
	for _, name := range []string{"npx", "npm", "uvx", "uv", "docker", "podman", "bash", "evil"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho "+name+" \"$@\" >> '"+e.started+"'\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.contacted = append(e.contacted, q.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	e.daemon = startDaemon(t, fmt.Sprintf(`{"registries":{"recorded":%q}}`, e.registry.URL), "PATH="+bin+":"+os.Getenv("PATH"), "HTTPS_PROXY="+proxy.URL, "HTTP_PROXY="+proxy.URL, noKeyring)
	return e
}

func (e *registryEnv) effects() string {
	text, _ := os.ReadFile(e.started) // no file: nothing was started
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(text) + strings.Join(e.contacted, " ")
}

type registryServer struct {
	Options []struct {
		Inputs []struct {
			Name                     string
			Required, Secret, Folder bool
		}
	}
}

// TestRegistryEntriesWaitForReview adds each of the 200 recorded entries, 90 of them hostile. Each is added for review or
// refused with a reason, and nothing is started or contacted. An approval starts exactly what the review shows.
func TestRegistryEntriesWaitForReview(t *testing.T) {
	t.Parallel()
	e := newRegistryEnv(t)
	added, refused := 0, 0
	for name := range e.registry.entries {
		status, text := e.rest("GET", "/registry/server?name="+url.QueryEscape(name), "")
		var shown struct{ Servers []registryServer }
		if status == http.StatusOK {
			if err := json.Unmarshal(text, &shown); err != nil || len(shown.Servers) != 1 {
				t.Fatalf("%s: %s", name, text)
			}
		}
		values := []string{}
		for _, s := range shown.Servers {
			for _, o := range s.Options[:min(1, len(s.Options))] {
				for _, in := range o.Inputs {
					switch {
					case in.Folder:
						values = append(values, in.Name+"="+t.TempDir())
					case in.Secret:
						values = append(values, in.Name+"=the-secret-value")
					case in.Required:
						values = append(values, in.Name+"=given")
					}
				}
			}
		}
		body, err := json.Marshal(map[string]any{"entry": name, "values": values})
		if err != nil {
			t.Fatal(err)
		}
		status, text = e.rest("POST", "/registry/add", string(body))
		var answer struct {
			Server       struct{ Stage string }
			Detail, Hint string
		}
		if err := json.Unmarshal(text, &answer); err != nil && status == http.StatusOK {
			t.Fatalf("%s: %v in %s", name, err, text)
		}
		switch {
		case status == http.StatusOK && answer.Server.Stage == "launch":
			added++
		case status >= 400 && status <= 502 && answer.Detail != "" && answer.Hint != "":
			refused++
			if !strings.Contains(name, "mallory") && !strings.HasPrefix(name, "..") {
				t.Errorf("%s is refused: %s", name, text)
			}
		default:
			t.Errorf("%s: %d %s", name, status, text)
		}
		if strings.Contains(string(text), "the-secret-value") {
			t.Errorf("%s: the answer contains a secret: %s", name, text)
		}
	}
	t.Logf("%d added for review, %d refused", added, refused)
	if added != 115 || refused != 85 {
		t.Errorf("%d added, %d refused", added, refused)
	}
	file, err := os.ReadFile(e.configPath())
	if err != nil || strings.Contains(string(file), "the-secret-value") || strings.Count(string(file), `"quarantined": true`)+strings.Count(string(file), `"quarantined":true`) != added {
		t.Errorf("%d servers were added: %s, %v", added, file, err)
	}
	e.stop()
	e.start() // a restart starts nothing either
	if effects := e.effects(); effects != "" {
		t.Fatalf("started or contacted before an approval: %s", effects)
	}
	approve := func(name string) {
		t.Helper()
		var review struct {
			Fingerprint string
			Launch      struct{ Args []string }
		}
		if _, text := e.rest("GET", "/servers/"+name+"/review", ""); json.Unmarshal(text, &review) != nil || review.Fingerprint == "" {
			t.Fatalf("%s", text)
		}
		if status, text := e.rest("POST", "/servers/"+name+"/approve", fmt.Sprintf(`{"fingerprint":%q}`, review.Fingerprint)); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	var config struct {
		MCPServers map[string]struct{ Command, URL string }
	}
	if err := json.Unmarshal(file, &config); err != nil {
		t.Fatal(err)
	}
	done := map[string]bool{}
	for name, s := range config.MCPServers { // the recorders work
		want := map[string]string{"npx": "@user", "": ".example.com:443"}[s.Command]
		if want == "" || done[want] || strings.Contains(name, "hostile") {
			continue
		}
		done[want] = true
		approve(name)
		eventually(t, name+" is started after its approval", func() error {
			if got := e.effects(); !strings.Contains(got, want) {
				return fmt.Errorf("%s is not in %q", want, got)
			}
			return nil
		})
	}
	if len(done) != 2 {
		t.Errorf("approved %v", done)
	}
}

// TestRegistryCommands searches, shows and adds on the command line, also without the registry.
func TestRegistryCommands(t *testing.T) {
	t.Parallel()
	e := newRegistryEnv(t)
	if code, out, notes := e.cli("registry", "search", "user"); code != 0 || !strings.Contains(out, "io.github.user0/") || !strings.Contains(notes, "recorded") {
		t.Fatal(code, out, notes)
	}
	var first string // a server of npm with a secret
	for name, raw := range e.registry.entries {
		if text := string(raw); strings.Contains(text, `"npm"`) && strings.Contains(text, "API_KEY") && strings.Contains(text, "--root") && !strings.Contains(text, "valueHint") && !strings.Contains(name, "mallory") && (first == "" || name < first) {
			first = name
		}
	}
	if code, out, notes := e.cli("registry", "show", first); code != 0 || !strings.Contains(out, "--env API_KEY=…") || !strings.Contains(notes, "upstream add --registry") {
		t.Fatal(code, out, notes)
	}
	if code, _, notes := e.cli("upstream", "add", "mine", "--registry", first); code == 0 || !strings.Contains(notes, "--root") {
		t.Fatalf("a required value is missing: %d %s", code, notes)
	}
	folder := t.TempDir()
	code, out, notes := e.cli("upstream", "add", "mine", "--registry", first, "--env", "API_KEY=very-secret", "--arg", "--root="+folder)
	if code != 0 || !strings.Contains(out, "MINE_API_KEY") || !strings.Contains(notes, "upstream approve mine") || strings.Contains(out+notes, "very-secret") {
		t.Fatal(code, out, notes)
	}
	if file, err := os.ReadFile(e.configPath()); err != nil || !strings.Contains(string(file), "${keyring:MINE_API_KEY}") || strings.Contains(string(file), "very-secret") {
		t.Errorf("%s, %v", file, err)
	}
	for entry, want := range map[string]string{"com.mallory/deprecated": "Use another one.", "com.mallory/deleted": "is deleted", "none/none": "No registry has", "none": "NAMESPACE/NAME"} {
		if code, _, notes := e.cli("upstream", "add", "no", "--registry", entry); code == 0 || !strings.Contains(notes, want) {
			t.Errorf("%s: %d %s", entry, code, notes)
		}
	}
	if code, out, _ := e.cli("registry", "show", "com.mallory/control"); code != 0 || strings.ContainsAny(out, "\x1b\x07\u202e") || !strings.Contains(out, "[") {
		t.Errorf("%d %q", code, out)
	}
	e.registry.Close()
	if code, out, notes := e.cli("registry", "show", first); code != 0 || !strings.Contains(out, first) || !strings.Contains(notes, "stored answer") {
		t.Error(code, out, notes)
	}
	if code, out, notes := e.cli("registry", "search", "user0"); code != 0 || !strings.Contains(out, "io.github.user0/") || !strings.Contains(notes, "stored answer") {
		t.Error(code, out, notes)
	}
	if effects := e.effects(); effects != "" {
		t.Errorf("started or contacted: %s", effects)
	}
}
