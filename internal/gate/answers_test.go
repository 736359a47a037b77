package gate

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/wirejson"
)

// recorded is a result of a tool of a real server, as it arrived through MCPProxy on 2026-11-26. The servers were
// mcp-server-kubernetes 4.1.7 on a kube-apiserver 1.32.3, whose nodes and pods have the status that a script wrote;
// mongodb-mcp-server 3.0.4 on FerretDB 1.24.2; github-mcp-server 0.20.0 on a local program that answers with the
// recordings and examples of GitHub's API in @octokit/fixtures, @octokit/openapi and @octokit/webhooks-examples; and
// @modelcontextprotocol/server-filesystem and -memory 2026.8.31. The shop data in the first two is made up.
type recorded struct {
	Server, Tool, Label string
	Result              json.RawMessage
}

// recordings reads the recorded results of real servers.
func recordings(t testing.TB) (all []recorded) {
	t.Helper()
	f, err := os.Open("testdata/answers.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// defaults returns the selections of a server in testdata/select.json, in their order.
func defaults(t testing.TB, server string) (all []config.ResultSelection) {
	t.Helper()
	text, err := os.ReadFile("testdata/select.json")
	if err != nil {
		t.Fatal(err)
	}
	err = wirejson.EachMember(wirejson.Find(text, server), func(pattern, expression []byte) error {
		e, _ := wirejson.String(expression)
		s, err := config.NewResultSelection(string(pattern), e)
		all = append(all, s)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("the selections of %s: %v, %v", server, all, err)
	}
	return all
}

// TestResultsOfRealServers checks that the default selections of a server shrink each of its recorded results by 80 %
// or more: the whole result, and its texts alone, which most clients show to the model.
func TestResultsOfRealServers(t *testing.T) {
	all := recordings(t)
	if len(all) < 20 {
		t.Fatalf("%d recorded results", len(all))
	}
	worlds := map[string]*world{}
	for _, r := range all {
		w := worlds[r.Server]
		if w == nil {
			var tools []string
			for _, o := range all {
				if d := fmt.Sprintf(`{"name":%q,"annotations":{"readOnlyHint":true}}`, o.Tool); o.Server == r.Server {
					tools = append(tools, d)
				}
			}
			w = newWorld(t, func(c *config.Config) { c.Servers[0].Selections = defaults(t, r.Server) }, tools...)
			worlds[r.Server] = w
		}
		w.answering(string(r.Result))
		asked := LaneCall{CallTool: policy.CallToolRead, Name: "s:" + r.Tool}
		got, p := w.ask(asked)
		for i := 0; i < 50 && strings.Contains(strings.Join(got.Warnings, " "), result.ErrLimit.Error()); i++ {
			got, p = w.ask(asked) // the limit of 150 ms is wall-clock time, and the machine may be busy
		}
		if p != nil {
			t.Errorf("%s:%s: %v", r.Server, r.Tool, p)
			continue
		}
		before, after := len(r.Result), len(got.Result)
		read, shown := len(strings.Join(textsOf(t, r.Result), "\n")), len(strings.Join(textsOf(t, got.Result), "\n"))
		t.Logf("%-10s %-22s %-36s %6d → %4d (%.1f %%), texts %6d → %4d (%.1f %%)", r.Server, r.Tool, r.Label,
			before, after, less(before, after), read, shown, less(read, shown))
		if less(before, after) < 80 || less(read, shown) < 80 {
			t.Errorf("%s:%s, %s: the result shrank by %.1f %%, its texts by %.1f %%, want 80 %%: %v", r.Server, r.Tool, r.Label, less(before, after), less(read, shown), textsOf(t, got.Result))
		}
	}
}

// less returns the reduction in percent.
func less(before, after int) float64 { return 100 * (1 - float64(after)/float64(before)) }
