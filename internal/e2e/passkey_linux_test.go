package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/gate/presence"
)

// A passphrase signs its successor, a passkey, in a terminal. After that the passphrase confirms nothing, and the
// address of the web UI uses localhost. (A browser test covers signing with the passkey.)
func TestPassphraseSignsPasskey(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	_, port, _ := strings.Cut(d.address, ":")
	standing := func() (head presence.Digest, kind presence.ProofKind) {
		t.Helper()
		_, raw := d.rest("GET", "/presence", "")
		var v struct {
			Head presence.Digest
			Kind presence.ProofKind
			Void string
		}
		if err := json.Unmarshal(raw, &v); err != nil || v.Void != "" {
			t.Fatalf("%v: %s", err, raw)
		}
		return v.Head, v.Kind
	}
	if code, out, screen := d.atTerminal([]prompted{{"New passphrase: ", thePassphrase}, {"Repeat it: ", thePassphrase}}, "presence", "set", "passphrase"); code != 0 {
		t.Fatalf("%d %s %s", code, out, screen)
	}
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	head, _ := standing()
	anchor := presence.Anchor{Kind: presence.Passkey, Since: time.Now().UTC().Truncate(time.Millisecond), Before: head, Key: spki, Credential: []byte("a credential"), Origin: presence.PageOrigin(port)}
	text, err := anchor.StoredJSON()
	if err != nil {
		t.Fatal(err)
	}
	set := []string{"presence", "set", "passkey", "--anchor", base64.RawURLEncoding.EncodeToString(text)}
	if code, out, _ := d.atTerminal([]prompted{{"Passphrase", "a wrong passphrase"}, {"Passphrase", ""}}, set...); code == 0 {
		t.Fatalf("a wrong passphrase is accepted: %s", out)
	}
	if _, kind := standing(); kind != presence.Passphrase {
		t.Fatalf("the presence method is %s", kind)
	}
	code, out, screen := d.atTerminal([]prompted{{"Passphrase", thePassphrase}}, set...)
	if print := anchor.Fingerprint().String(); code != 0 || !strings.Contains(out, print) || !strings.Contains(screen, `presence anchor "passkey" "`+print+`"`) {
		t.Fatalf("%d\n%s\n%s", code, out, screen)
	}
	if now, kind := standing(); kind != presence.Passkey || now != anchor.Fingerprint() {
		t.Fatalf("the presence method is %s, %s", kind, now)
	}
	if code, out, screen := d.atTerminal([]prompted{{"Passphrase", thePassphrase}}, "presence", "set", "none"); code != 3 || !strings.Contains(out, "mcpproxy ui") {
		t.Errorf("the old passphrase is still accepted: %d %s %s", code, out, screen)
	}
	if _, out, _ := d.cli("status"); !strings.Contains(out, "http://localhost:"+port+"/ui/") {
		t.Errorf("the web UI does not use localhost:\n%s", out)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + d.address + "/ui/settings?part=presence")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "http://localhost:"+port+"/ui/settings?part=presence" {
		t.Errorf("%s to %q", resp.Status, to)
	}
}

// An import of many servers needs one signature, and so does the approval of all definitions of a server.
func TestBatchesNeedOneSignature(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	if code, out, screen := d.atTerminal([]prompted{{"New passphrase: ", thePassphrase}, {"Repeat it: ", thePassphrase}}, "presence", "set", "passphrase"); code != 0 {
		t.Fatalf("%d %s %s", code, out, screen)
	}
	var servers []string
	for _, name := range []string{"one", "two", "three"} {
		servers = append(servers, fmt.Sprintf(`%q: {"command": %q, "args": ["demo-upstream", "notes"], "env": {"WHICH": %[1]q}}`, name, binary))
	}
	file := d.inHome("servers.json", `{"mcpServers": {`+strings.Join(servers, ", ")+`}}`)
	if code, out, _ := d.atTerminal([]prompted{{"Passphrase", ""}}, "upstream", "import", file, "--yes"); code == 0 || strings.Contains(d.readConfig(), "demo-upstream") {
		t.Fatalf("imported without the passphrase: %s", out)
	}
	code, out, screen := d.atTerminal([]prompted{{"Passphrase", thePassphrase}}, "upstream", "import", file, "--yes")
	if code != 0 || strings.Count(screen, "Passphrase") != 1 {
		t.Fatalf("%d\n%s\n%s", code, out, screen)
	}
	for _, name := range []string{"one", "two", "three"} {
		if !strings.Contains(screen, `"mcpServers.`+name+`"`) || !strings.Contains(d.readConfig(), `"`+name+`"`) {
			t.Errorf("%s was not imported\n%s\n%s", name, screen, d.readConfig())
		}
	}
	u := startUpstream(t, `{"name":"a","inputSchema":{"type":"object"}}`, `{"name":"b","inputSchema":{"type":"object"}}`, `{"name":"c","inputSchema":{"type":"object"}}`)
	if code, out, screen := d.atTerminal([]prompted{{"Passphrase", thePassphrase}}, "upstream", "add", "up", "--url", u.URL, "--trust", "manual"); code != 0 {
		t.Fatalf("%d\n%s\n%s", code, out, screen)
	}
	code, out, screen = d.atTerminal([]prompted{{"Passphrase", thePassphrase}}, "tools", "approve", "up:*", "--yes")
	if code != 0 || !strings.Contains(out, "Approved 3 tools.") || strings.Count(screen, "Passphrase") != 1 || strings.Count(screen, `approve "tool" "up"`) != 3 {
		t.Errorf("%d\n%s\n%s", code, out, screen)
	}
	d.awaitTools("up:a", "up:b", "up:c")
}
