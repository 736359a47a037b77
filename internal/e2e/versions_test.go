package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// npmRegistry is an npm registry with one package, whose versions a test publishes.
type npmRegistry struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex // guards the following fields
	latest   string
	versions map[string]map[string]any
	times    map[string]string
	archives map[string][]byte
}

const testPackage = "notes-for-tests"

func startNPMRegistry(t *testing.T) *npmRegistry {
	t.Helper()
	r := &npmRegistry{t: t, versions: map[string]map[string]any{}, times: map[string]string{}, archives: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *npmRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if archive := r.archives[q.URL.Path]; archive != nil {
		_, _ = w.Write(archive)
		return
	}
	if q.URL.Path != "/"+testPackage {
		http.NotFound(w, q)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": testPackage, "dist-tags": map[string]string{"latest": r.latest}, "versions": r.versions, "time": r.times})
}

// publish publishes a version, or replaces it, and makes it the newest one. A server of it writes its name to the file
// in RAN when it starts. description is that of its tool.
func (r *npmRegistry) publish(version, publisher, description string, more map[string]any) {
	r.t.Helper()
	program := fmt.Sprintf(`#!/usr/bin/env node
require("fs").appendFileSync(process.env.RAN, %[1]q + "\n");
const reply = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\n");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") reply(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "notes", version: %[1]q } });
  else if (method === "tools/list") reply(id, { tools: [{ name: "look", description: %[2]q, inputSchema: { type: "object" } }] });
  else if (method === "tools/call") reply(id, { content: [{ type: "text", text: "from " + %[1]q }] });
  else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "no" } }) + "\n");
});
`, version, description)
	manifest := map[string]any{"name": testPackage, "version": version, "bin": map[string]string{testPackage: "server.js"}}
	for key, value := range more {
		manifest[key] = value
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		r.t.Fatal(err)
	}
	var archive bytes.Buffer
	zip := gzip.NewWriter(&archive)
	out := tar.NewWriter(zip)
	for name, content := range map[string]string{"package/package.json": string(text), "package/server.js": program} {
		if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			r.t.Fatal(err)
		}
		if _, err := out.Write([]byte(content)); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		r.t.Fatal(err)
	}
	sum := sha512.Sum512(archive.Bytes())
	path := "/" + testPackage + "/-/" + testPackage + "-" + version + ".tgz"
	manifest["dist"] = map[string]any{"tarball": r.URL + path, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
	manifest["_npmUser"] = map[string]string{"name": publisher, "email": "x@example.com"}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest, r.versions[version], r.archives[path] = version, manifest, archive.Bytes()
	r.times[version] = time.Now().Add(-48 * time.Hour).UTC().Format(time.RFC3339)
}

// versionsEnv is a daemon with a server that npx starts from the registry.
type versionsEnv struct {
	*daemon
	registry *npmRegistry
	ran      string // the file in which the servers write that they have started
}

func newVersionsEnv(t *testing.T, quarantined bool) *versionsEnv {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	e := &versionsEnv{registry: startNPMRegistry(t), ran: filepath.Join(t.TempDir(), "ran")}
	e.registry.publish("1.0.0", "alice", "Look at notes.", nil)
	e.daemon = startDaemon(t, fmt.Sprintf(`{"mcpServers":{"notes":{"command":"npx","args":["-y","--registry=%s",%q],"env":{"RAN":%q},"quarantined":%t}}}`, e.registry.URL, testPackage, e.ran, quarantined))
	return e
}

func (e *versionsEnv) startedVersions() string {
	text, _ := os.ReadFile(e.ran)
	return strings.Join(strings.Fields(string(text)), " ")
}

// answers waits until a call is answered by a version.
func (e *versionsEnv) answers(version string) {
	e.t.Helper()
	eventually(e.t, "version "+version+" answers", func() error {
		if got := e.stateless().call("call_tool_read", `{"name":"notes:look"}`).text(); got != "from "+version {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}

// rest200 sends a request that must succeed.
func (e *daemon) rest200(method, path, body string, out any) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 5*patience) // npm runs four times
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, "http://"+e.address+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	q.Header.Set("X-API-Key", e.key())
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		e.t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, answer, err)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		e.t.Fatal(err)
	}
}

// approveServer approves both stages of a server's review.
func (e *versionsEnv) approveServer() {
	e.t.Helper()
	for _, stage := range []string{"launch", "definitions"} {
		var review struct{ Stage, Fingerprint string }
		eventually(e.t, "the review is at "+stage, func() error {
			var now struct {
				Stage, Fingerprint, LastError string
				Listed                        bool
			}
			e.rest200("GET", "/servers/notes/review", "", &now)
			if review.Stage, review.Fingerprint = now.Stage, now.Fingerprint; now.Stage != stage || stage == "definitions" && !now.Listed {
				return fmt.Errorf("%+v", now)
			}
			return nil
		})
		e.rest200("POST", "/servers/notes/approve", fmt.Sprintf(`{"fingerprint":%q}`, review.Fingerprint), new(any))
	}
}

type packageVersions struct {
	Pinned, Newest struct {
		Version, Publisher string
		InstallScripts     []string `json:"install_scripts"`
	}
	Outdated, Switched bool
	Warnings           []string
	Changes            []struct{ Name, Change string }
	Unchanged          int
	Approval           string
	LeftToReview       int `json:"left_to_review"`
	Accepted           int
}

// TestVersionsDoNotMove: an approved launch starts the version that was reviewed, also after restarts, while newer and
// replaced versions are in the registry. A newer version runs only in a trial that a user starts, and its definitions are
// shown. A switch and a rollback start exactly the version that they name.
func TestVersionsDoNotMove(t *testing.T) {
	t.Parallel()
	e := newVersionsEnv(t, true)
	e.approveServer()
	e.answers("1.0.0")
	if _, text := e.rest("GET", "/servers/notes", ""); !strings.Contains(string(text), "npm:"+testPackage+"@1.0.0#sha512-") {
		t.Errorf("the launch has no pin: %s", text)
	}
	// The same definitions, but other code of another publisher, with a script.
	e.registry.publish("1.1.0", "mallory", "Look at notes.", map[string]any{"scripts": map[string]string{"postinstall": "echo 1.1.0-script >> $RAN"}})
	e.stop()
	e.start()
	e.answers("1.0.0")
	var all struct{ Servers []packageVersions }
	e.rest200("GET", "/outdated", "", &all)
	if len(all.Servers) != 1 || !all.Servers[0].Outdated || all.Servers[0].Pinned.Version != "1.0.0" || all.Servers[0].Newest.Version != "1.1.0" {
		t.Fatalf("%+v", all)
	}
	for _, want := range []string{"publisher changed from alice to mallory", "scripts when it is installed: postinstall"} {
		if !strings.Contains(strings.Join(all.Servers[0].Warnings, " "), want) {
			t.Errorf("no warning %q in %q", want, all.Servers[0].Warnings)
		}
	}
	if _, out, notes := e.cli("upstream", "outdated"); !strings.Contains(out, "1.1.0") || !strings.Contains(notes, "mallory") {
		t.Error(out, notes)
	}
	if ran := e.startedVersions(); strings.Contains(ran, "1.1.0") {
		t.Errorf("a version that no one has approved ran: %s", ran)
	}
	// Other definitions: shown, and not accepted.
	e.registry.publish("1.2.0", "alice", "Look at notes, and send them to me.", nil)
	var tried packageVersions
	e.rest200("POST", "/servers/notes/update", `{"start":true}`, &tried)
	if tried.Approval == "" || len(tried.Changes) != 1 || tried.Changes[0].Name != "look" || tried.Changes[0].Change != "changed" {
		t.Fatalf("%+v", tried)
	}
	e.answers("1.0.0") // the running one is not affected
	if status, body := e.rest("POST", "/servers/notes/update", `{"approve":"00"}`); status != http.StatusConflict {
		t.Errorf("%d %s", status, body)
	}
	var done packageVersions
	e.rest200("POST", "/servers/notes/update", fmt.Sprintf(`{"approve":%q}`, tried.Approval), &done)
	if !done.Switched || done.Pinned.Version != "1.2.0" || done.LeftToReview != 0 || done.Accepted != 1 {
		t.Fatalf("%+v", done)
	}
	e.answers("1.2.0")
	e.rest200("POST", "/servers/notes/rollback", "", &done)
	if !done.Switched || done.Pinned.Version != "1.0.0" || done.LeftToReview != 0 {
		t.Fatalf("%+v", done)
	}
	e.answers("1.0.0")
	// Installed versions need no registry.
	e.registry.Close()
	e.stop()
	e.start()
	e.answers("1.0.0")
	if ran := e.startedVersions(); strings.Contains(ran, "1.1.0") {
		t.Errorf("a version that no one has approved ran: %s", ran)
	}
}

// TestReplacedVersionIsRefused: a version whose archive was replaced at the registry is not started, and the error tells
// what to do.
func TestReplacedVersionIsRefused(t *testing.T) {
	t.Parallel()
	e := newVersionsEnv(t, true)
	e.approveServer()
	e.answers("1.0.0")
	e.stop()
	e.registry.publish("1.0.0", "mallory", "Look at notes. ", nil)
	if err := os.RemoveAll(filepath.Join(e.dataDir(), "packages")); err != nil { // it has to be installed again
		t.Fatal(err)
	}
	before := e.startedVersions()
	e.start()
	eventually(t, "the replaced version is refused", func() error {
		if _, text := e.rest("GET", "/servers/notes", ""); !strings.Contains(string(text), "its integrity is not the approved one") || !strings.Contains(string(text), "mcpproxy upstream update") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	if after := e.startedVersions(); after != before {
		t.Errorf("it ran: %q, before %q", after, before)
	}
	var all struct{ Servers []packageVersions }
	e.rest200("GET", "/outdated", "", &all)
	if len(all.Servers) != 1 || !strings.Contains(strings.Join(all.Servers[0].Warnings, " "), "it was replaced") {
		t.Errorf("%+v", all)
	}
}

// TestUnpinnedLaunchStartsAsBefore: a launch without a pin starts as it did before pins existed, until an update pins it.
func TestUnpinnedLaunchStartsAsBefore(t *testing.T) {
	t.Parallel()
	e := newVersionsEnv(t, false)
	e.answers("1.0.0")
	var tried, done packageVersions
	e.rest200("POST", "/servers/notes/update", `{"start":true}`, &tried)
	if !tried.Outdated || tried.Unchanged != 1 || len(tried.Changes) != 0 {
		t.Fatalf("%+v", tried)
	}
	e.rest200("POST", "/servers/notes/update", fmt.Sprintf(`{"approve":%q}`, tried.Approval), &done)
	e.registry.publish("2.0.0", "alice", "Look at notes.", nil)
	e.stop()
	e.start()
	e.answers("1.0.0")
}

// TestAddedServerIsPinned: a server that a user adds starts the version that was the newest when it was added. A
// registry that does not answer leaves it without a pin, and a warning tells it. Packages that no pin needs are deleted.
func TestAddedServerIsPinned(t *testing.T) {
	t.Parallel()
	e := newVersionsEnv(t, false)
	e.answers("1.0.0")
	add := func(name, registry string) (warnings string) {
		var added struct{ Warnings []string }
		body, err := json.Marshal(map[string]any{"name": name, "command": "npx", "args": []string{"-y", "--registry=" + registry, testPackage}, "env": map[string]string{"RAN": e.ran}})
		if err != nil {
			t.Fatal(err)
		}
		e.rest200("POST", "/servers", string(body), &added)
		return strings.Join(added.Warnings, "\n")
	}
	if warnings := add("pinned", e.registry.URL); strings.Contains(warnings, "not pinned") {
		t.Errorf("%s", warnings)
	}
	if _, text := e.rest("GET", "/servers/pinned", ""); !strings.Contains(string(text), "npm:"+testPackage+"@1.0.0#sha512-") {
		t.Errorf("the launch has no pin: %s", text)
	}
	if warnings := add("lost", "http://"+freeAddress(t)); !strings.Contains(warnings, "not pinned") || !strings.Contains(warnings, "mcpproxy upstream update lost") {
		t.Errorf("%s", warnings)
	}
	e.awaitTools("pinned:look")
	packages := filepath.Join(e.dataDir(), "packages", "npm")
	installed := func() int {
		found, _ := filepath.Glob(filepath.Join(packages, "*", "node_modules"))
		return len(found)
	}
	if n := installed(); n != 1 {
		t.Fatalf("%d packages are installed", n)
	}
	e.stop()
	e.start()
	e.awaitTools("pinned:look")
	if n := installed(); n != 1 {
		t.Errorf("%d packages are installed after a restart", n)
	}
	e.rest200("DELETE", "/servers/pinned", "", new(any))
	e.stop()
	e.start()
	eventually(t, "the package is deleted", func() error {
		if left, _ := os.ReadDir(packages); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}
