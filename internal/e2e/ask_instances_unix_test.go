//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/pgtest"
)

// TestApprovalsAcrossInstances: a call that waits at one instance continues when it is approved at another one. A lease
// is valid at all instances. One approval permits one call across all instances.
func TestApprovalsAcrossInstances(t *testing.T) {
	t.Parallel()
	world := &counted{}
	world.add("wipe", `{"destructiveHint":true}`, `{"type":"object"}`)
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, world.tool...))
	database := pgtest.StartServer(t).CreateDatabase(t)
	var both []*daemon
	for range 2 {
		both = append(both, startDaemon(t, fmt.Sprintf(`{"database":%q,"ask":{"destructive":"ask","wait":"2m","answer_by_client":["trusted"]},"mcpServers":{"s":{"url":%q,"trust":"auto"}}}`, database, u.URL)))
	}
	for _, d := range both {
		awaitReady(d)
		d.awaitTools("s:wipe")
	}
	here, there := both[0], both[1]
	begin := func(n int) <-chan string {
		answer := make(chan string, 1)
		go func() {
			_, body, _, err := here.stateless().try(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s}}`, modernParams(fmt.Sprintf(`"name":"call_tool_destructive","arguments":{"name":"s:wipe","args":{"n":%d}}`, n), "")),
				map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "call_tool_destructive"})
			answer <- fmt.Sprint(string(body), err)
		}()
		return answer
	}
	waits := func() string {
		t.Helper()
		id := ""
		eventually(t, "the other instance sees what waits", func() error {
			var list struct{ Pending []struct{ ID string } }
			if _, body := there.rest("GET", "/pending", ""); json.Unmarshal(body, &list) != nil || len(list.Pending) != 1 {
				return fmt.Errorf("%s", body)
			}
			id = list.Pending[0].ID
			return nil
		})
		return id
	}
	goesOn := func(answer <-chan string) {
		t.Helper()
		if got := <-answer; !strings.Contains(got, "it ran") {
			t.Errorf("%s", got)
		}
	}
	answer := begin(1)
	id := waits()
	if status, body := there.rest("POST", "/pending/"+id+"/approve", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	goesOn(answer)
	if status, body := here.rest("POST", "/pending/"+id+"/deny", "{}"); status != http.StatusConflict {
		t.Errorf("a second answer: %d %s", status, body)
	}
	answer = begin(2)
	waits()
	if status, body := there.rest("POST", "/leases", `{"server":"s","lane":"destructive","calls":1}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	goesOn(answer)
	// A client gets a form from one instance and sends the answer to the other one.
	token := here.createToken("trusted")
	const call = `{"name":"call_tool_destructive","arguments":{"name":"s:wipe","args":{"n":3}}%s}`
	state, shown := (&forms{daemon: here}).once("/mcp", token, fmt.Sprintf(call, ""))
	if state == "" {
		t.Fatal(shown)
	}
	eventually(t, "the other instance takes the answer", func() error {
		_, got := (&forms{daemon: there}).once("/mcp", token, fmt.Sprintf(call, `,"requestState":`+string(wirejson.AppendString(nil, state))+`,"inputResponses":{"approval":{"action":"accept","content":{"decision":"approve once"}}}`))
		if !strings.Contains(got, "it ran") {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	if ran := world.all(); len(ran) != 3 {
		t.Errorf("%q", ran)
	}
}
