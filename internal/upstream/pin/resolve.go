package pin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/mcp/dialpolicy"
	"mcpproxy/internal/problem"
)

// Version is what a registry says about one version of a package. Its texts come from the registry.
type Version struct {
	Pin
	Published      time.Time // zero: unknown
	Publisher      string    // "" if unknown
	InstallScripts []string  // scripts that run when the package is installed
	Deprecated     string    // why it is deprecated or withdrawn; "" if it is not
}

// maxAnswer limits the answer of a registry, in bytes.
const maxAnswer = 64 << 20

// Resolve asks the registry for the requested version of the package; "" is the newest one, as the runner chooses it.
// env is the environment of the server, which may name another registry.
func (l *Launch) Resolve(ctx context.Context, version string, env []string) (Version, error) {
	switch l.Kind {
	case NPM:
		return l.viewNPM(ctx, version, env)
	case PyPI:
		return l.viewPyPI(ctx, version, env)
	}
	return l.inspectImage(ctx, version, env)
}

// viewNPM asks the registry through npm, which knows the user's registries, proxies and credentials.
func (l *Launch) viewNPM(ctx context.Context, version string, env []string) (Version, error) {
	spec := l.Name
	if version != "" {
		spec += "@" + version
	}
	args := []string{"view", spec, "--json", "--fetch-retries=0", "--fetch-timeout=20000"}
	out, err := output(ctx, env, "npm", append(args, l.NPMFlags()...)...)
	if err != nil {
		return Version{}, fmt.Errorf("npm cannot read %s: %w", spec, err)
	}
	var v npmVersion
	if out = bytes.TrimSpace(out); len(out) > 0 && out[0] == '[' { // several versions match: npm takes the last
		var all []npmVersion
		if err = json.Unmarshal(out, &all); err == nil && len(all) > 0 {
			v = all[len(all)-1]
		}
	} else {
		err = json.Unmarshal(out, &v)
	}
	if err != nil || v.Version == "" || v.Name != l.Name {
		return Version{}, fmt.Errorf("npm view %s returned no version", spec)
	}
	if v.Dist.Integrity == "" {
		return Version{}, fmt.Errorf("the registry has no integrity for %s@%s", v.Name, v.Version)
	}
	found := Version{Pin: Pin{NPM, v.Name, v.Version, v.Dist.Integrity}, Published: v.Time[v.Version], Publisher: string(v.User)}
	for _, name := range []string{"preinstall", "install", "postinstall"} {
		if v.Scripts[name] != "" {
			found.InstallScripts = append(found.InstallScripts, name)
		}
	}
	if found.Deprecated = strings.Trim(string(v.Deprecated), `"`); found.Deprecated == "false" {
		found.Deprecated = ""
	}
	return found, Check(found.Pin.String())
}

// NPMFlags returns the flags of npx that matter for an installation.
func (l *Launch) NPMFlags() (out []string) {
	for _, name := range []string{"--registry", "--cache", "--userconfig"} {
		if value := l.Flag(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	if slices.Contains(l.Flags, "--ignore-scripts") {
		out = append(out, "--ignore-scripts")
	}
	return out
}

type npmVersion struct {
	Name, Version string
	Dist          struct{ Integrity string }
	Time          map[string]time.Time
	User          npmUser `json:"_npmUser"`
	Scripts       map[string]string
	Deprecated    json.RawMessage
}

// npmUser is a user of npm without the mail address, in both forms that registries use.
type npmUser string

func (u *npmUser) UnmarshalJSON(raw []byte) error {
	var object struct{ Name string }
	text := ""
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &object) != nil {
		return nil // unknown
	}
	name, _, _ := strings.Cut(cmp.Or(text, object.Name), " <")
	*u = npmUser(name)
	return nil
}

// indexFile is a file in the JSON form of a simple index (PEP 691, PEP 700).
type indexFile struct {
	Filename string            `json:"filename"`
	Hashes   map[string]string `json:"hashes"`
	Uploaded time.Time         `json:"upload-time"`
	Yanked   json.RawMessage   `json:"yanked"`
}

// viewPyPI asks the simple index for the files of a version.
func (l *Launch) viewPyPI(ctx context.Context, version string, env []string) (Version, error) {
	named := cmp.Or(l.Flag("--default-index", "--index-url", "-i"), Variable(env, "UV_DEFAULT_INDEX"), Variable(env, "UV_INDEX_URL"))
	index, err := url.Parse(cmp.Or(named, "https://pypi.org/simple"))
	if err != nil {
		return Version{}, errors.New("the address of the Python index is invalid")
	}
	// An index that the user names can be in a private network. No index leads to the addresses of a machine's credentials.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialpolicy.ForHost(index.Hostname(), named != "").Dial, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	name := withoutExtras(l.Name)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, index.JoinPath(strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))).String()+"/", nil)
	if err != nil {
		return Version{}, err
	}
	req.Header.Set("Accept", "application/vnd.pypi.simple.v1+json")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return Version{}, fmt.Errorf("the Python index cannot be read: %w", err)
	}
	defer resp.Body.Close()
	var page struct {
		Versions []string
		Files    []indexFile
	}
	if resp.StatusCode != http.StatusOK {
		return Version{}, fmt.Errorf("the Python index answers %s for %s", resp.Status, name)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&page); err != nil {
		return Version{}, fmt.Errorf("the Python index has no JSON form: %w", err)
	}
	if version == "" {
		version = newestVersion(page.Versions)
	}
	found := Version{Pin: Pin{Kind: PyPI, Name: l.Name, Version: version}}
	var lines []string
	for _, f := range page.Files {
		if fileVersion(f.Filename, name) != version {
			continue
		}
		if f.Hashes["sha256"] == "" {
			return Version{}, fmt.Errorf("the Python index has no SHA-256 for %s", f.Filename)
		}
		lines = append(lines, f.Filename+" "+f.Hashes["sha256"])
		if found.Published.IsZero() || f.Uploaded.Before(found.Published) {
			found.Published = f.Uploaded
		}
		if yanked := strings.Trim(string(f.Yanked), `"`); yanked != "" && yanked != "false" {
			found.Deprecated = "withdrawn: " + yanked
		}
		if strings.HasSuffix(f.Filename, ".tar.gz") && found.InstallScripts == nil {
			found.InstallScripts = []string{"build of the source, if no wheel fits"}
		}
	}
	if lines == nil {
		return Version{}, fmt.Errorf("the Python index has no version %s of %s", version, name)
	}
	slices.Sort(lines)
	found.Integrity = "sha256-" + digest(strings.Join(lines, "\n"))
	return found, Check(found.Pin.String())
}

// inspectImage pulls an image and returns its digest.
func (l *Launch) inspectImage(ctx context.Context, version string, env []string) (Version, error) {
	version = cmp.Or(version, "latest")
	image := l.Name + ":" + version
	if _, err := output(ctx, env, l.Runner[0], "pull", "--quiet", image); err != nil {
		return Version{}, fmt.Errorf("the image %s cannot be pulled: %w", image, err)
	}
	out, err := output(ctx, env, l.Runner[0], "image", "inspect", image)
	var found []struct {
		RepoDigests []string
		Created     time.Time
	}
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil || len(found) != 1 {
		return Version{}, fmt.Errorf("the image %s cannot be inspected: %w", image, cmp.Or(err, errors.New("no such image")))
	}
	for _, d := range found[0].RepoDigests {
		if _, sum, ok := strings.Cut(d, "@"); ok {
			v := Version{Pin: Pin{Docker, l.Name, version, sum}, Published: found[0].Created}
			return v, Check(v.Pin.String())
		}
	}
	return Version{}, fmt.Errorf("the image %s has no digest of a registry", image)
}

// output runs a program and returns its output. Its error contains the end of its standard error.
func output(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.WaitDelay = env, 5*time.Second
	var out, notes limited
	cmd.Stdout, cmd.Stderr = &out, &notes
	err := cmd.Run()
	if text := strings.TrimSpace(notes.String()); err != nil && text != "" {
		err = errors.New(problem.ClipForDisplay(strings.Join(strings.Fields(text), " "), 400))
	}
	return out.Bytes(), err
}

// limited keeps the first maxAnswer bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxAnswer - l.Len(); room < len(p) {
		return 0, errors.New("the output is too large")
	}
	return l.Buffer.Write(p)
}

// Variable returns the value of a variable in an environment; "" if it is not set.
func Variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}
