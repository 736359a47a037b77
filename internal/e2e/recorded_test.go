package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// record adds the tools that a real server has listed. Their calls are only counted.
func (c *counted) record(t *testing.T, name string) {
	t.Helper()
	for _, definition := range realServers(t)[name] {
		own, _ := wirejson.String(wirejson.Find(definition, "name"))
		c.tool = append(c.tool, mcptest.Tool{Definition: string(definition), Handle: func(*mcptest.Call) (json.RawMessage, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ran = append(c.ran, own)
			return json.RawMessage(`{"content":[{"type":"text","text":"it ran"}]}`), nil
		}})
	}
}

// TestRecordedServersReadWithoutAsking follows the guide, with the tool lists of real servers: reads run in the read
// lane. Other calls are refused in that lane, and the refusal names the deciding word. In their own lane they need
// approval. The servers receive neither.
func TestRecordedServersReadWithoutAsking(t *testing.T) {
	t.Parallel()
	github, kubernetes := &counted{}, &counted{}
	github.record(t, "github")
	kubernetes.record(t, "kubernetes")
	one, two := mcptest.Serve(t, mcptest.New(mcptest.Options{}, github.tool...)), mcptest.Serve(t, mcptest.New(mcptest.Options{}, kubernetes.tool...))
	d := startDaemon(t, fmt.Sprintf(`{"validate_arguments": "off", "intent_declaration": {"judge_arguments": "enforce", "infer_hints": "enforce"},
		"ask": {"write": "ask", "destructive": "ask", "tools": {"github:add_issue_comment": "off"}, "wait": "1s"},
		"mcpServers": {"github": {"url": %q, "trust": "auto"}, "k8s": {"url": %q, "trust": "auto", "lanes": {
			"kubectl_generic": {"by": "cli", "argument": "$.command"},
			"kubectl_rollout": {"by": "action", "argument": "$.subCommand", "read": ["status", "history"], "destructive": ["undo"]}}}}}`, one.URL, two.URL))
	d.awaitTools("github:list_issues", "k8s:kubectl_generic")
	a := d.stateless()
	call := func(lane, name, args string) string {
		return a.call("call_tool_"+lane, fmt.Sprintf(`{"name":%q,"args":%s}`, name, args)).text()
	}
	var asked sync.WaitGroup
	waits := func(lane, name, args string) { // the calls run concurrently
		asked.Go(func() {
			if r := d.stateless().call("call_tool_"+lane, fmt.Sprintf(`{"name":%q,"args":%s}`, name, args)); !strings.Contains(r.text(), "waits for the user's approval") {
				t.Errorf("%s %s in the %s lane: %s", name, args, lane, r.text())
			}
		})
	}
	reads := 0
	for _, listed := range github.tool {
		own, _ := wirejson.String(wirejson.Find([]byte(listed.Definition), "name"))
		name, before := "github:"+own, len(github.all())
		verb, _, _ := strings.Cut(own, "_")
		isRead := verb == "get" || verb == "list" || verb == "search"
		in := call("read", name, "{}")
		if isRead {
			reads++
			if in != "it ran" {
				t.Errorf("%s in the read lane: %s", name, in)
			}
			continue
		}
		if !strings.Contains(in, "seems to write (its name says") || len(github.all()) != before {
			t.Errorf("%s in the read lane: %s", name, in)
		}
		if own != "add_issue_comment" {
			waits("write", name, "{}")
		} else if in = call("write", name, "{}"); in != "it ran" {
			t.Errorf("%s in the write lane: %s", name, in)
		}
	}
	if reads != 14 || len(github.tool) != 26 {
		t.Errorf("%d of %d tools read", reads, len(github.tool))
	}
	for _, c := range []struct{ lane, name, args, want string }{
		{"read", "kubectl_generic", `{"command":"get","resourceType":"pods"}`, "it ran"},
		{"read", "kubectl_generic", `{"command":"describe","resourceType":"pod","name":"x"}`, "it ran"},
		{"read", "kubectl_generic", `{"command":"delete","resourceType":"pod","name":"x"}`, "destructive (kubectl delete), use call_tool_destructive"},
		{"read", "kubectl_generic", `{"command":"apply"}`, "write (kubectl apply), use call_tool_write"},
		{"read", "kubectl_generic", `{"command":"rollout","subCommand":"undo"}`, "write (kubectl rollout), use call_tool_write"},
		{"read", "kubectl_generic", `{"command":"get pods; rm -rf /"}`, "destructive (rm)"},
		{"read", "kubectl_rollout", `{"subCommand":"status","name":"x"}`, "it ran"},
		{"read", "kubectl_rollout", `{"subCommand":"restart","name":"x"}`, "write (restart)"},
		{"read", "kubectl_rollout", `{"subCommand":"undo","name":"x"}`, "destructive (undo)"},
		{"read", "kubectl_get", `{"resourceType":"pods"}`, "it ran"},
		{"read", "kubectl_delete", `{"resourceType":"pod","name":"x"}`, "is marked destructive by server"},
		{"read", "exec_in_pod", `{"name":"x","command":["ls"]}`, "is marked destructive by server"},
	} {
		before := len(kubernetes.all())
		if got := call(c.lane, "k8s:"+c.name, c.args); !strings.Contains(got, c.want) || (len(kubernetes.all()) == before) != (c.want != "it ran") {
			t.Errorf("%s %s in the %s lane: %s", c.name, c.args, c.lane, got)
		}
	}
	waits("destructive", "k8s:kubectl_generic", `{"command":"delete","resourceType":"pod","name":"x"}`)
	waits("destructive", "k8s:uninstall_helm_chart", `{"name":"x","namespace":"y"}`)
	asked.Wait()
	if len(github.all()) != 15 || len(kubernetes.all()) != 4 {
		t.Errorf("%q and %q ran", github.all(), kubernetes.all())
	}
}
