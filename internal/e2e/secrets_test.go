package e2e

import (
	"os"
	"strings"
	"testing"
)

// The value of a secret reference appears only in requests to the server that uses it.
func TestResolvedReferencesStaySecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-value-of-a-reference"
	d := startDaemon(t, `{"mcpServers":{
		"cmd": {"command": "/nonexistent/${env:E2E_SECRET}"},
		"url": {"url": "http://127.0.0.1:1/mcp?k=${env:E2E_SECRET}", "headers": {"X-Custom": "${env:E2E_SECRET}"}},
	}}`, "E2E_SECRET="+secret)
	var shown []string
	for _, name := range []string{"cmd", "url"} {
		eventually(t, name+" has failed", func() error {
			_, body := d.rest("GET", "/servers/"+name, "")
			if !strings.Contains(string(body), `"last_error"`) {
				return os.ErrNotExist
			}
			shown = append(shown, string(body))
			return nil
		})
		r := d.legacy().call("call_tool_read", `{"name":"`+name+`:x"}`)
		shown = append(shown, r.text(), string(r.StructuredContent))
		_, logs := d.rest("GET", "/servers/"+name+"/logs", "")
		_, stdout, stderr := d.cli("upstream", "get", name)
		shown = append(shown, string(logs), stdout, stderr)
	}
	shown = append(shown, string(d.legacy().call("upstream_servers", `{"operation":"list"}`).StructuredContent))
	_, activities := d.rest("GET", "/activity", "")
	d.stop()
	shown = append(shown, string(activities), d.stderr.String())
	for _, text := range shown {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is shown: %s", text)
		}
	}
	eachFile(t, d.dataDir(), func(path string, content []byte) {
		if strings.Contains(string(content), secret) {
			t.Errorf("the secret is in %s", path)
		}
	})
}
