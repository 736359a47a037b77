package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/volume"
)

// contractCase defines the requests for one REST operation. The test derives the requests for 400, 401 and 403 from the
// one that gets 200.
type contractCase struct {
	ok       func(c *contract) (path, body string) // gets 200
	header   map[string]string                     // of the request that gets 200
	missing  func(c *contract) (path, body string) // gets 404
	conflict func(c *contract) (path, body string) // gets 409
	// The reasons why there is no request for 404, 409 or 200.
	no404, no409, no200 string
	page                bool   // for pages of the web UI: sent with a session and without the API key
	etag                bool   // needs the ETag of the configuration
	wrong               string // the body that gets 401, if the credential is in the body
}

// The reasons for no404, no409 and no200.
const (
	namesNothing  = "it names nothing that could be missing"
	changesNone   = "it changes nothing, so that nothing is in its way"
	alwaysCan     = "it can be done whatever the state is"
	sinceChanged  = "its 409 is another etag: see TestConfig"
	seeToys       = "TestSampleServers has a server in the way"
	saysInResults = "each result says it"
	seePresence   = "after it nobody could decide anything: TestUnsignedDecisionsAreInvalid asks it"
)

func at(path string) func(*contract) (string, string) { return with(path, "") }

func with(path, body string) func(*contract) (string, string) {
	return func(*contract) (string, string) { return path, body }
}

const noFingerprint = `{"fingerprint":"0000000000000000000000000000000000000000000000000000000000000000"}`

// decides returns the case of a decision about a definition by its fingerprint. The actions in prepare are done first.
func decides(path, action string, prepare ...string) contractCase {
	missing := strings.Replace(path, "/s/", "/none/", 1)
	missing = strings.Replace(missing, "/o/", "/none/", 1)
	return contractCase{
		ok: func(c *contract) (string, string) {
			body := fmt.Sprintf(`{"fingerprint":%q}`, c.text("GET", path+"/diff", "", "fingerprint"))
			for _, before := range prepare {
				c.text("POST", path+"/"+before, body, "")
			}
			return path + "/" + action, body
		},
		missing: with(missing+"/"+action, noFingerprint), conflict: with(path+"/"+action, noFingerprint),
	}
}

func differs(path string) contractCase {
	missing := strings.Replace(path, "/o/", "/none/", 1)
	return contractCase{ok: at(path + "/diff"), missing: at(strings.Replace(missing, "/s/", "/none/", 1) + "/diff"), no409: changesNone}
}

// onServer returns the case of an action on a server. A proposed server does not have these actions.
func onServer(action string) contractCase {
	return contractCase{ok: at("/servers/s/" + action), missing: at("/servers/none/" + action), conflict: at("/servers/wish/" + action)}
}

// contractCases maps the ID of each operation to its case. Add a new operation next to the others of its resource.
var contractCases = map[string]contractCase{
	"getStatus":           {ok: at("/status"), no404: namesNothing, no409: changesNone},
	"getPresence":         {ok: at("/presence"), no404: namesNothing, no409: changesNone},
	"setPresence":         {no200: seePresence, conflict: with("/presence", `{"anchor":{"kind":"none","since":"2026-11-26T10:00:00Z","before":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}}`), no404: namesNothing},
	"joinPresence":        {no200: seePresence, conflict: at("/presence/join"), no404: namesNothing},
	"resetPresence":       {no200: seePresence, conflict: at("/presence/reset"), no404: namesNothing},
	"cancelPresenceReset": {no200: seePresence, conflict: at("/presence/reset/cancel"), no404: namesNothing},
	"getDocument":         {ok: at("/openapi.json"), no404: namesNothing, no409: changesNone},
	"readDocument":        {ok: at("/docs"), no404: namesNothing, no409: changesNone},

	"listServers":   {ok: at("/servers"), no404: namesNothing, no409: changesNone},
	"getServer":     {ok: at("/servers/s"), missing: at("/servers/none"), no409: changesNone},
	"restartServer": onServer("restart"),
	"loginServer":   {ok: at("/servers/tickets/login"), missing: at("/servers/none/login"), no409: alwaysCan},
	"getLogin": {ok: func(c *contract) (string, string) {
		c.text("POST", "/servers/tickets/login", "", "")
		return "/servers/tickets/login", ""
	}, missing: at("/servers/s/login"), no409: changesNone},
	"completeLogin": {ok: func(c *contract) (string, string) {
		u, err := url.Parse(c.text("POST", "/servers/tickets/login", "", "url"))
		if err != nil {
			c.t.Fatal(err)
		}
		q := u.Query()
		return "/servers/tickets/login/complete", fmt.Sprintf(`{"url":%q}`, q.Get("redirect_uri")+"?error=access_denied&state="+q.Get("state"))
	}, missing: with("/servers/none/login/complete", `{"url":"http://127.0.0.1/"}`), conflict: with("/servers/s/login/complete", `{"url":"http://127.0.0.1/"}`)},
	"logoutServer":     {ok: at("/servers/tickets/logout"), missing: at("/servers/none/logout"), no409: alwaysCan},
	"getServerLogs":    {ok: at("/servers/s/logs?lines=10"), missing: at("/servers/none/logs"), no409: changesNone},
	"followServerLogs": {ok: at("/servers/s/logs/follow"), missing: at("/servers/none/logs/follow"), no409: changesNone},
	"addServer":        {ok: with("/servers", `{"name":"added","command":"x","quarantined":true}`), conflict: with("/servers", `{"name":"s","command":"x"}`), no404: namesNothing},
	"addServers":       {ok: with("/servers/add", `{"servers":[{"name":"added2","command":"x","quarantined":true},{"name":"s","command":"x"}]}`), conflict: with("/servers/add", `{"servers":[{"name":"twice","command":"x"},{"name":"twice","command":"x"}]}`), no404: namesNothing},
	"addToys":          {ok: at("/demo"), no404: seeToys, no409: seeToys},
	"parseServers":     {ok: with("/servers/parse", `{"text":"TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz npx -y a"}`), no404: namesNothing, no409: changesNone},
	"findServers":      {ok: at("/clients/servers"), no404: namesNothing, no409: changesNone},
	"importServers": {ok: func(c *contract) (string, string) {
		var all struct{ Found []struct{ ID string } }
		_, body := c.rest("GET", "/clients/servers", "")
		if err := json.Unmarshal(body, &all); err != nil || len(all.Found) == 0 {
			c.t.Fatalf("no client has a server: %s", body)
		}
		return "/servers/import", fmt.Sprintf(`{"ids":[%q],"keyring":true,"remove":true}`, all.Found[len(all.Found)-1].ID)
	}, missing: with("/servers/import", `{"ids":["none"]}`), no409: "its 409 is in the result of each server"},
	"changeServer":     {ok: with("/servers/s", `{"call_timeout":"30s"}`), missing: with("/servers/none", `{"call_timeout":"30s"}`), conflict: with("/servers/wish", `{"call_timeout":"30s"}`)},
	"removeServer":     {ok: at("/servers/gone"), missing: at("/servers/none"), no409: alwaysCan},
	"enableServer":     onServer("enable"),
	"disableServer":    {ok: at("/servers/spare/disable"), missing: at("/servers/none/disable"), conflict: at("/servers/wish/disable")},
	"quarantineServer": {ok: at("/servers/spare/quarantine"), missing: at("/servers/none/quarantine"), no409: alwaysCan},
	"reviewServer":     {ok: at("/servers/o/review"), missing: at("/servers/none/review"), no409: changesNone},
	"approveServer": {ok: func(c *contract) (string, string) {
		return "/servers/jail/approve", fmt.Sprintf(`{"fingerprint":%q}`, c.text("GET", "/servers/jail/review", "", "fingerprint"))
	}, missing: with("/servers/none/approve", noFingerprint), conflict: with("/servers/jail/approve", noFingerprint)},

	"listTokens":   {ok: at("/tokens"), no404: namesNothing, no409: changesNone},
	"createToken":  {ok: with("/tokens", `{"name":"ci","lanes":["read"],"expires_in":"30d"}`), missing: with("/tokens", `{"name":"x","profile":"none"}`), conflict: with("/tokens", `{"name":"taken"}`)},
	"revokeToken":  {ok: at("/tokens/taken"), missing: at("/tokens/none"), no409: alwaysCan},
	"listProfiles": {ok: at("/profiles"), no404: namesNothing, no409: changesNone},

	"testNotifications": {ok: at("/notifications/test"), no404: namesNothing, no409: alwaysCan},

	"searchRegistry":    {ok: at("/registry/servers?q=user"), missing: at("/registry/servers?q=abc&registry=none"), no409: changesNone},
	"showRegistryEntry": {ok: at("/registry/server?name=io.github.user1%2Fquery-1"), missing: at("/registry/server?name=a%2Fb"), no409: changesNone},
	"addFromRegistry":   {ok: with("/registry/add", `{"entry":"io.github.user1/query-1"}`), missing: with("/registry/add", `{"entry":"a/b"}`), conflict: with("/registry/add", `{"entry":"com.mallory/deprecated"}`)},

	"listOutdated":   {ok: at("/outdated"), no404: namesNothing, no409: changesNone},
	"updateServer":   {conflict: with("/servers/s/update", "{}"), missing: with("/servers/none/update", "{}"), no200: "it needs a package: TestVersionsDoNotMove"},
	"rollBackServer": {conflict: at("/servers/s/rollback"), missing: at("/servers/none/rollback"), no200: "it needs a package: TestVersionsDoNotMove"},

	"suggestSandbox": {no200: "it needs a process: TestSuggestedSandboxes", missing: at("/servers/none/sandbox/suggest"), conflict: at("/servers/tickets/sandbox/suggest")},

	"getPause":    {ok: at("/pause"), no404: namesNothing, no409: changesNone},
	"pauseCalls":  {ok: with("/pause", `{"reason":"an agent deletes the wrong files"}`), no404: namesNothing, no409: alwaysCan},
	"resumeCalls": {ok: at("/resume"), no404: namesNothing, no409: alwaysCan},

	"listPending": {ok: func(c *contract) (string, string) { c.held(); return "/pending", "" }, no404: namesNothing, no409: changesNone},
	"getPending":  {ok: func(c *contract) (string, string) { return "/pending/" + c.held(), "" }, missing: at("/pending/none"), no409: changesNone},
	"approveCall": {ok: func(c *contract) (string, string) { return "/pending/" + c.held() + "/approve", "" }, missing: at("/pending/none/approve"), conflict: func(c *contract) (string, string) {
		id := c.held()
		c.text("POST", "/pending/"+id+"/deny", "{}", "id")
		return "/pending/" + id + "/approve", ""
	}},
	"denyCall": {ok: func(c *contract) (string, string) { return "/pending/" + c.held() + "/deny", `{"reason":"no"}` }, missing: with("/pending/none/deny", "{}"), conflict: func(c *contract) (string, string) {
		id := c.held()
		c.text("POST", "/pending/"+id+"/approve", "", "id")
		return "/pending/" + id + "/deny", "{}"
	}},
	"listLeases": {ok: at("/leases"), no404: namesNothing, no409: changesNone},
	"grantLease": {ok: with("/leases", `{"server":"s","lane":"read","for":"15m","calls":20}`), missing: with("/leases", `{"server":"none"}`), no409: alwaysCan},
	"revokeLease": {ok: func(c *contract) (string, string) {
		return "/leases/" + c.text("POST", "/leases", `{"server":"s","lane":"read"}`, "id"), ""
	}, missing: at("/leases/none"), no409: alwaysCan},

	"can":       {ok: with("/can", `{"who":"claude-code","name":"s:plain","args":{}}`), missing: with("/can", `{"who":"nobody","name":"s:plain"}`), no409: changesNone},
	"tryPolicy": {ok: with("/policy/try", `{"text":"{}","period":"30d"}`), no404: namesNothing, no409: changesNone},

	"getTool":      {ok: at("/servers/s/tools/plain"), missing: at("/servers/s/tools/none"), no409: changesNone},
	"listTools":    {ok: at("/tools?server=s"), no404: namesNothing, no409: changesNone},
	"searchTools":  {ok: at("/tools/search?q=plain&explain=true"), no404: namesNothing, no409: changesNone},
	"getToolStats": {ok: at("/tools/stats"), no404: namesNothing, no409: changesNone},
	"callTool": {
		ok: with("/tools/call", `{"tool_variant":"call_tool_destructive","name":"s:plain","args":{}}`), header: map[string]string{"Idempotency-Key": "contract"},
		missing: with("/tools/call", `{"tool_variant":"call_tool_read","name":"s:none"}`),
		conflict: func(c *contract) (string, string) {
			const other = `{"tool_variant":"call_tool_destructive","name":"s:plain","args":{}}`
			c.ask(c.t.(*testing.T), c.operation("callTool"), 200, "/tools/call", other, func(r *http.Request) { r.Header.Set("Idempotency-Key", "contract") })
			return "/tools/call", strings.Replace(other, "{}", `{"another":1}`, 1)
		},
	},
	"changeTool":   {ok: with("/servers/s/tools/plain", `{"always":true}`), missing: with("/servers/s/tools/none", `{"alias":"x"}`), conflict: with("/servers/s/tools/plain", `{"alias":"spare"}`)},
	"enableTool":   {ok: at("/servers/s/tools/plain/enable"), missing: at("/servers/s/tools/none/enable"), no409: alwaysCan},
	"disableTool":  {ok: at("/servers/s/tools/spare/disable"), missing: at("/servers/s/tools/none/disable"), no409: alwaysCan},
	"diffTool":     differs("/servers/s/tools/plain"),
	"approveTool":  decides("/servers/s/tools/plain", "approve"),
	"blockTool":    decides("/servers/s/tools/spare", "block"),
	"unblockTool":  decides("/servers/s/tools/taken", "unblock", "block"),
	"withdrawTool": decides("/servers/s/tools/taken", "withdraw", "approve"),

	"listApprovals": {ok: at("/approvals?limit=10"), no404: namesNothing, no409: changesNone},
	"approveTools": {ok: func(c *contract) (string, string) {
		return "/approvals/approve", fmt.Sprintf(`{"tools":[{"name":"s:plain","fingerprint":%q},{"name":"s:none","fingerprint":""}]}`, c.text("GET", "/servers/s/tools/plain/diff", "", "fingerprint"))
	}, no404: saysInResults, no409: saysInResults},
	"diffPrompt":           differs("/servers/o/prompts/ask"),
	"approvePrompt":        decides("/servers/o/prompts/ask", "approve"),
	"blockPrompt":          decides("/servers/o/prompts/ask", "block"),
	"unblockPrompt":        decides("/servers/o/prompts/ask", "unblock", "block"),
	"withdrawPrompt":       decides("/servers/o/prompts/ask", "withdraw", "approve"),
	"diffResource":         differs("/servers/o/resources/notes:%2F%2Fone"),
	"approveResource":      decides("/servers/o/resources/notes:%2F%2Fone", "approve"),
	"blockResource":        decides("/servers/o/resources/notes:%2F%2Fone", "block"),
	"unblockResource":      decides("/servers/o/resources/notes:%2F%2Fone", "unblock", "block"),
	"withdrawResource":     decides("/servers/o/resources/notes:%2F%2Fone", "withdraw", "approve"),
	"diffTemplate":         differs("/servers/o/templates/book:%2F%2F%7Bpage%7D"),
	"approveTemplate":      decides("/servers/o/templates/book:%2F%2F%7Bpage%7D", "approve"),
	"blockTemplate":        decides("/servers/o/templates/book:%2F%2F%7Bpage%7D", "block"),
	"unblockTemplate":      decides("/servers/o/templates/book:%2F%2F%7Bpage%7D", "unblock", "block"),
	"withdrawTemplate":     decides("/servers/o/templates/book:%2F%2F%7Bpage%7D", "withdraw", "approve"),
	"diffInstructions":     differs("/servers/o/instructions"),
	"approveInstructions":  decides("/servers/o/instructions", "approve"),
	"blockInstructions":    decides("/servers/o/instructions", "block"),
	"unblockInstructions":  decides("/servers/o/instructions", "unblock", "block"),
	"withdrawInstructions": decides("/servers/o/instructions", "withdraw", "approve"),

	"signIn": {ok: func(c *contract) (string, string) { return "/session", fmt.Sprintf(`{"key":%q}`, c.key()) },
		page: true, wrong: `{"key":"wrong"}`, no404: namesNothing, no409: alwaysCan},
	"getSession": {ok: at("/session"), page: true, no404: namesNothing, no409: changesNone},
	"signOut":    {ok: at("/session"), page: true, no404: namesNothing, no409: alwaysCan},
	"newCode":    {ok: at("/session/codes"), no404: namesNothing, no409: alwaysCan},
	"getCode": {ok: func(c *contract) (string, string) {
		return "/session/codes/" + c.text("POST", "/session/codes", "", "id"), ""
	}, missing: at("/session/codes/none"), no409: changesNone},

	"getConfig":    {ok: at("/config"), no404: namesNothing, no409: changesNone},
	"changeConfig": {ok: with("/config", `{"set":{"tools_limit":15}}`), etag: true, no404: namesNothing, no409: sinceChanged},
	"replaceConfig": {ok: func(c *contract) (string, string) {
		body, _ := json.Marshal(map[string]string{"text": c.text("GET", "/config", "", "text")})
		return "/config", string(body)
	}, etag: true, no404: namesNothing, no409: sinceChanged},
	"listClients":   {ok: at("/clients"), no404: namesNothing, no409: changesNone},
	"connectClient": {ok: with("/clients/cursor/connect", `{"dry_run":true}`), missing: with("/clients/none/connect", `{"dry_run":true}`), no409: "its 409 is a file that changes while it is written: see userfile"},
	"disconnectClient": {ok: func(c *contract) (string, string) {
		c.text("POST", "/clients/cursor/connect", `{}`, "path")
		return "/clients/cursor/disconnect", `{"dry_run":true}`
	}, missing: with("/clients/none/disconnect", `{"dry_run":true}`), no409: "its 409 is a file that changes while it is written: see userfile"},
	"undoClientChange": {ok: func(c *contract) (string, string) {
		return "/clients/undo", `{"change":"` + c.text("POST", "/clients/zed/connect", `{}`, "change") + `"}`
	}, missing: with("/clients/undo", `{"change":"none"}`), no409: "its 409 is a file that was changed since: see connect"},
	"writePermissions": {ok: with("/clients/claude-code/permissions", `{"dry_run":true}`), missing: with("/clients/none/permissions", `{"dry_run":true}`), no409: "its 409 is a file that changes while it is written: see userfile"},

	"confirmConfig":  {ok: with("/config/confirm", ""), no404: namesNothing, no409: changesNone},
	"validateConfig": {ok: with("/config/validate", `{"text":"{}"}`), no404: namesNothing, no409: changesNone},
	"listConfigs":    {ok: at("/config/history"), no404: namesNothing, no409: changesNone},
	"getEarlierConfig": {ok: func(c *contract) (string, string) {
		var all struct{ Versions []struct{ ID string } }
		eventually(c.t, "the history has a version", func() error {
			_, body := c.rest("GET", "/config/history", "")
			if err := json.Unmarshal(body, &all); err != nil || len(all.Versions) == 0 {
				return fmt.Errorf("%s", body)
			}
			return nil
		})
		return "/config/history/" + all.Versions[0].ID, ""
	}, missing: at("/config/history/none"), no409: changesNone},
	"listSecrets": {ok: at("/secrets"), no404: namesNothing, no409: changesNone},
	"setSecret":   {ok: with("/secrets/CONTRACT", `{"value":"x"}`), no404: namesNothing, no409: alwaysCan},
	"deleteSecret": {ok: func(c *contract) (string, string) {
		c.rest("PUT", "/secrets/GONE", `{"value":"x"}`)
		return "/secrets/GONE", ""
	}, missing: at("/secrets/NONE"), no409: alwaysCan},
	"getDiagnostics": {ok: at("/diagnostics"), no404: namesNothing, no409: changesNone},

	"getActivitySummary": {ok: at("/activity/summary?period=24h&step=30m&group=lane"), no404: namesNothing, no409: changesNone},
	"exportActivity":     {ok: at("/activity/export?format=jsonl"), no404: namesNothing, no409: changesNone},
	"verifyActivity":     {ok: at("/activity/verify"), no404: namesNothing, no409: changesNone},
	"redactActivity": {ok: func(c *contract) (string, string) {
		_, body := c.rest("POST", "/tools/call", `{"tool_variant":"call_tool_destructive","name":"s:plain","args":{"a":1}}`)
		var made struct {
			ID string `json:"activity_id"`
		}
		if err := json.Unmarshal(body, &made); err != nil || made.ID == "" {
			c.t.Fatalf("%s, %v", body, err)
		}
		return "/activity/" + made.ID + "/redact", `{"fields":["arguments"]}`
	}, missing: with("/activity/01AAAAAAAAAAAAAAAAAAAAAAAA/redact", `{"fields":["arguments"]}`), conflict: with("/activity/0/redact", `{"fields":["arguments"]}`)},
	"listSessions": {ok: at("/sessions"), no404: namesNothing, no409: changesNone},
	"streamEvents": {ok: at("/events"), no404: namesNothing, no409: changesNone},

	"listActivity": {ok: at("/activity?limit=5"), no404: namesNothing, no409: changesNone},
	"getActivity": {ok: func(c *contract) (string, string) { return "/activity/" + c.record(), "" }, missing: at("/activity/01AAAAAAAAAAAAAAAAAAAAAAAA"),
		conflict: at("/activity/0")},
}

// contract is a real daemon and its OpenAPI document.
type contract struct {
	*daemon
	document map[string]any
	schemas  *jsonschema.Compiler
	asked    int // number of held calls
}

// contractOperation is one operation of the OpenAPI document.
type contractOperation struct {
	id, method, path string
	responses        map[string]any
}

func startContract(t *testing.T) *contract {
	t.Helper()
	tools := make([]string, 0, 3)
	for _, name := range []string{"plain", "spare", "taken", "held"} {
		tools = append(tools, `{"name":"`+name+`","description":"Does it.","inputSchema":{"type":"object"}}`)
	}
	u, o := startUpstream(t, tools...), startOffering(t, false, offersOf("It is honest."))
	login := mcptest.StartLoginServer(t, startUpstream(t))
	c := &contract{daemon: startDaemon(t, fmt.Sprintf(`{"mcp_management": "propose", "ask": {"tools": {"s:held": "ask"}, "wait": "1s"}, "mcpServers": {"s": {"url": %[1]q}, "spare": {"url": %[1]q}, "gone": {"url": %[1]q}, "jail": {"url": %[1]q, "quarantined": true},
		"o": {"url": %q}, "tickets": {"url": %q}}, "registries": {"recorded": %q}}`, u.URL, o.URL, login.URL, startMCPRegistry(t).URL), noKeyring)}
	c.inHome(".junie/mcp/mcp.json", `{"mcpServers": {"imported": {"command": "imported-mcp", "env": {"IMPORTED_TOKEN": "x"}}}}`)
	c.awaitTools("s:plain", "s:taken", "spare:plain")
	c.awaitState("tickets", "needs_login")
	for _, path := range []string{"prompts/ask", "resources/notes:%2F%2Fone", "templates/book:%2F%2F%7Bpage%7D", "instructions"} {
		eventually(t, path+" succeeds", func() error {
			if status, body := c.rest("GET", "/servers/o/review", ""); status != http.StatusOK {
				return fmt.Errorf("%d %s", status, body)
			}
			status, body := c.rest("GET", "/servers/o/"+path+"/diff", "")
			if status != http.StatusOK {
				return fmt.Errorf("%d %s", status, body)
			}
			return nil
		})
	}
	if r := c.legacy().call("upstream_servers", `{"operation":"add","name":"wish","command":"x"}`); r.IsError {
		t.Fatalf("an agent proposes a server: %+v", r)
	}
	if status, body := c.rest("POST", "/tokens", `{"name":"taken"}`); status != http.StatusOK {
		t.Fatalf("a token: %d %s", status, body)
	}
	status, body := c.rest("GET", "/openapi.json", "")
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %v", status, err)
	}
	c.document = document.(map[string]any)
	c.schemas = jsonschema.NewCompiler()
	c.schemas.AssertFormat()
	if err := c.schemas.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *contract) operations() (all []contractOperation) {
	for path, methods := range c.document["paths"].(map[string]any) {
		for method, o := range methods.(map[string]any) {
			o := o.(map[string]any)
			all = append(all, contractOperation{o["operationId"].(string), method, path, o["responses"].(map[string]any)})
		}
	}
	slices.SortFunc(all, func(a, b contractOperation) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method))
	})
	return all
}

func (c *contract) operation(id string) contractOperation {
	all := c.operations()
	return all[slices.IndexFunc(all, func(o contractOperation) bool { return o.id == id })]
}

// text sends a request that must succeed. It returns a member of the response if one is named.
func (c *contract) text(method, path, body, member string) string {
	c.t.Helper()
	status, answer := c.rest(method, path, body)
	var out map[string]any
	_ = json.Unmarshal(answer, &out)
	text, ok := out[member].(string)
	if status != http.StatusOK || !ok && member != "" {
		c.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return text
}

// held makes a call that needs approval and returns the ID of the pending approval.
func (c *contract) held() string {
	c.t.Helper()
	c.asked++
	status, body := c.rest("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_write","name":"s:held","args":{"n":%d}}`, c.asked))
	var p struct {
		Code    string
		Details struct {
			ID string `json:"approval_id"`
		}
	}
	if err := json.Unmarshal(body, &p); err != nil || status != http.StatusForbidden || p.Code != "APPROVAL_PENDING" {
		c.t.Fatalf("%d %s", status, body)
	}
	return p.Details.ID
}

// record returns the ID of a record.
func (c *contract) record() string {
	c.t.Helper()
	var page struct{ Activities []struct{ ID string } }
	eventually(c.t, "the log has a record", func() error {
		_, body := c.rest("GET", "/activity?limit=1", "")
		if err := json.Unmarshal(body, &page); err != nil || len(page.Activities) == 0 {
			return fmt.Errorf("%s", body)
		}
		return nil
	})
	return page.Activities[0].ID
}

// ask sends a request and checks the response against the OpenAPI document.
func (c *contract) ask(t *testing.T, o contractOperation, want int, path, body string, change func(*http.Request)) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), strings.ToUpper(o.method), "http://"+c.address+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", c.key())
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	change(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	kind := "default"
	if want == http.StatusOK {
		kind = "200"
	}
	content := o.responses[kind].(map[string]any)["content"].(map[string]any)
	media := resp.Header.Get("Content-Type")
	described, ok := content[media].(map[string]any)
	if resp.StatusCode != want || !ok {
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
		t.Errorf("%s %s: %d %s, want %d: %s", req.Method, path, resp.StatusCode, media, want, answer)
		return
	}
	if described["schema"] == nil || !strings.HasSuffix(media, "json") {
		return // a web page or a stream
	}
	answer, err := jsonschema.UnmarshalJSON(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, path, err)
	}
	place := strings.NewReplacer("~", "~0", "/", "~1")
	schema, err := c.schemas.Compile("openapi.json#/paths/" + place.Replace(o.path) + "/" + o.method + "/responses/" + kind + "/content/" + place.Replace(media) + "/schema")
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, path, err)
	}
	if err := schema.Validate(answer); err != nil {
		t.Errorf("%s %s (%d) does not match the OpenAPI document: %v", req.Method, path, want, err)
	}
	if document, ok := answer.(map[string]any); ok && want != http.StatusOK && fmt.Sprint(document["status"]) != fmt.Sprint(want) {
		t.Errorf("%s %s: status %v in a %d", req.Method, path, document["status"], want)
	}
}

// asPage makes a request look like one from a signed-in page of the web UI.
func (c *contract) asPage(r *http.Request) {
	own := func(r *http.Request) {
		r.Header.Set("Origin", "http://"+c.address)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	in, err := http.NewRequestWithContext(r.Context(), "POST", "http://"+c.address+"/api/v1/session", strings.NewReader(fmt.Sprintf(`{"key":%q}`, c.key())))
	if err != nil {
		c.t.Fatal(err)
	}
	in.Header.Set("Content-Type", "application/json")
	own(in)
	resp, err := http.DefaultClient.Do(in)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var session struct{ Value string }
	if err := json.NewDecoder(resp.Body).Decode(&session); err != nil || session.Value == "" {
		c.t.Fatalf("sign in: %s %v", resp.Status, err)
	}
	own(r)
	for _, cookie := range resp.Cookies() {
		r.AddCookie(cookie)
	}
	r.Header.Set("X-MCPProxy-Session", session.Value)
	r.Header.Del("X-API-Key")
}

// TestContract sends requests for the statuses 200, 400, 401, 403, 404 and 409 of every operation to the real daemon.
// Every response matches the OpenAPI document.
func TestContract(t *testing.T) {
	t.Parallel()
	c := startContract(t)
	entries := map[string]bool{}
	for _, o := range c.operations() {
		entries[o.id] = true
		asked, there := contractCases[o.id]
		if !there {
			t.Errorf("%s %s has no entry in contractCases: add %q with a request for 200, and a request or a reason for 404 and 409", strings.ToUpper(o.method), o.path, o.id)
			continue
		}
		t.Run(o.id, func(t *testing.T) {
			nothing := func(r *http.Request) {
				if asked.etag {
					r.Header.Set("If-Match", c.text("GET", "/config", "", "etag"))
				}
				if asked.page {
					c.asPage(r)
				}
			}
			as := func(change func(*http.Request)) func(*http.Request) {
				return func(r *http.Request) { nothing(r); change(r) }
			}
			// The order matters: the conflict of callTool depends on an earlier Idempotency-Key.
			for _, one := range []struct {
				status  int
				request func(*contract) (string, string)
				never   string
			}{{404, asked.missing, asked.no404}, {409, asked.conflict, asked.no409}} {
				switch {
				case (one.request == nil) == (one.never == ""):
					t.Errorf("the entry needs a request for %d or a reason why there is none", one.status)
				case one.request != nil:
					path, body := one.request(c)
					c.ask(t, o, one.status, path, body, as(func(r *http.Request) { headers(r, asked.header) }))
				}
			}
			ok := asked.ok
			if asked.no200 != "" {
				ok = asked.conflict
			}
			path, body := ok(c)
			more := "?"
			if strings.Contains(path, "?") {
				more = "&"
			}
			c.ask(t, o, 400, path+more+"nonsense=1", body, nothing)
			if body != "" {
				c.ask(t, o, 400, path, `{"nonsense":1}`, nothing)
				c.ask(t, o, 400, path, `{`, nothing)
				c.ask(t, o, 400, path, body, as(func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }))
				c.ask(t, o, 413, path, `{"x":"`+strings.Repeat("x", 5<<20)+`"}`, nothing)
			}
			if o.id == "readDocument" { // it requires no API key
				return
			}
			c.ask(t, o, 401, path, cmp.Or(asked.wrong, body), as(func(r *http.Request) {
				r.Header.Del("X-API-Key")
				r.Header.Del("X-MCPProxy-Session")
			}))
			c.ask(t, o, 401, path, cmp.Or(asked.wrong, body), as(func(r *http.Request) {
				r.Header.Set("X-API-Key", "wrong")
				r.Header.Set("X-MCPProxy-Session", "wrong")
			}))
			c.ask(t, o, 403, path, body, as(func(r *http.Request) { r.Host = "evil.example" }))
			c.ask(t, o, 403, path, body, as(func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }))
			if asked.no200 == "" {
				c.ask(t, o, 200, path, body, as(func(r *http.Request) { headers(r, asked.header) }))
			}
			if o.id == "pauseCalls" { // later entries make calls
				c.text("POST", "/resume", "", "")
			}
		})
	}
	for id := range contractCases {
		if !entries[id] {
			t.Errorf("contractCases has %q, but no operation has this ID", id)
		}
	}
}

// TestEveryFailureIsAProblem: every error is a problem document, also on paths without an operation.
func TestEveryFailureIsAProblem(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	for _, one := range []struct {
		method, path, host string
		status             int
	}{
		{"GET", "/api/v1", "", 404}, {"GET", "/api/v1/", "", 404}, {"GET", "/api/v1/nothing", "", 404}, {"POST", "/api/v1/servers/a/b/c/d", "", 404},
		{"PUT", "/api/v1/servers", "", 405}, {"OPTIONS", "/api/v1/servers", "", 405}, {"DELETE", "/api/v1/status", "", 405},
		{"GET", "/api/v1/nothing", "evil.example", 403}, {"GET", "/api/v1", "evil.example", 403}, {"PUT", "/api/v1/servers", "evil.example:80", 403},
	} {
		req, err := http.NewRequestWithContext(t.Context(), one.method, "http://"+d.address+one.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-Key", d.key())
		req.Host = one.host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Type, Title, Detail, Code, Hint string }
		err = json.NewDecoder(resp.Body).Decode(&p)
		resp.Body.Close()
		if resp.StatusCode != one.status || resp.Header.Get("Content-Type") != "application/problem+json" || err != nil || p.Code == "" || p.Detail == "" || p.Hint == "" || p.Title == "" || !strings.HasPrefix(p.Type, "urn:") {
			t.Errorf("%s %s at %q: %d %s %+v, %v", one.method, one.path, one.host, resp.StatusCode, resp.Header.Get("Content-Type"), p, err)
		}
	}
}

// BenchmarkApproveMany approves 500 definitions in one request.
func BenchmarkApproveMany(b *testing.B) {
	var tools []string
	for i := range 500 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":"Does it.","inputSchema":{"type":"object"}}`, i))
	}
	u := startUpstream(b, tools...)
	d := startDaemon(b, fmt.Sprintf(`{"mcpServers": {"s": {"url": %q, "trust": "manual"}}}`, u.URL))
	d.awaitTools("s:t0")
	var waiting struct {
		Tools []struct {
			Name        string `json:"name"`
			Fingerprint string `json:"fingerprint"`
		} `json:"tools"`
	}
	_, body := d.rest("GET", "/approvals", "")
	if err := json.Unmarshal(body, &waiting); err != nil || len(waiting.Tools) != 500 {
		b.Fatalf("%d wait, %v", len(waiting.Tools), err)
	}
	request, _ := json.Marshal(waiting)
	for b.Loop() {
		if status, body := d.rest("POST", "/approvals/approve", string(request)); status != http.StatusOK || bytes.Count(body, []byte(`"ok":true`)) != 500 {
			b.Fatalf("%d %s", status, body[:min(len(body), 500)])
		}
	}
}

func headers(r *http.Request, all map[string]string) {
	for name, value := range all {
		r.Header.Set(name, value)
	}
}

// TestParsedServersCanBeAdded: POST /servers accepts the add member that POST /servers/parse returns.
func TestParsedServersCanBeAdded(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	texts := []string{
		`{"mcpServers": {"a": {"command": "/nowhere/a", "args": ["--x"], "env": {"GITHUB_TOKEN": "ghp_0123456789abcdefghijklmnopqrstuvwxyz"}}, /* c */ "b": {"url": "https://b.invalid/mcp?api_key=0123456789abcdef", "headers": {"Authorization": "Bearer 0123456789abcdef0123"}, "disabled": true},}}`,
		"[mcp_servers.c]\ncommand = \"/nowhere/c\"\nenabled_tools = [\"one\"]\n", "d:\n  command: /nowhere/d\n", "K=v /nowhere/e --token 0123456789abcdef", "https://f.invalid/mcp",
	}
	secrets, quarantined := 0, 0
	for _, text := range texts {
		quoted, _ := json.Marshal(text)
		status, body := d.rest("POST", "/servers/parse", `{"text":`+string(quoted)+`}`)
		var parsed struct {
			Servers []struct {
				Name    string
				Add     json.RawMessage
				Secrets []struct{ Place, Name, Kind, Suggestion string }
				Notes   []string
			}
			Mistakes []any
		}
		if err := json.Unmarshal(body, &parsed); err != nil || status != http.StatusOK || len(parsed.Servers) == 0 || len(parsed.Mistakes) > 0 {
			t.Fatalf("%s: %d %s", text, status, body)
		}
		for _, s := range parsed.Servers {
			for _, secret := range s.Secrets {
				if secrets++; !strings.Contains(secret.Suggestion, "${env:") || secret.Kind == "" || secret.Kind == "secret" {
					t.Errorf("%s: %+v", s.Name, secret)
				}
			}
			if bytes.Contains(s.Add, []byte(`"quarantined":true`)) {
				if quarantined++; len(s.Notes) == 0 {
					t.Errorf("%s: the reason for the quarantine is missing", s.Name)
				}
			}
			if status, body := d.rest("POST", "/servers", string(s.Add)); status != http.StatusOK {
				t.Errorf("%s: %d %s", s.Add, status, body)
			}
		}
	}
	if secrets != 4 || quarantined != 2 {
		t.Errorf("%d secrets, %d quarantined", secrets, quarantined)
	}
	itself, _ := json.Marshal(fmt.Sprintf(`{"mcpServers": {"me": {"url": "http://%s/mcp"}, "bridge": {"command": "mcpproxy", "args": ["stdio"]}}}`, d.address))
	if _, body := d.rest("POST", "/servers/parse", `{"text":`+string(itself)+`}`); !bytes.Contains(body, []byte(`"servers":[]`)) || bytes.Count(body, []byte("is left out: MCPProxy cannot be its own server")) != 2 {
		t.Errorf("MCPProxy itself: %s", body)
	}
}

// TestDocumentIsValid: an independent validator accepts the document as OpenAPI 3.1.
func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Oracles)
	modules := os.Getenv("MCPPROXY_NODE_MODULES")
	if modules == "" {
		modules = filepath.Join("..", "..", ".ci", "npm", "node_modules")
	}
	modules, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	validator, node := filepath.Join(modules, "@redocly", "cli", "bin", "cli.js"), filepath.Join(modules, "node", "bin", "node")
	_, err = os.Stat(validator)
	if _, missing := os.Stat(node); missing != nil && err == nil {
		node, err = exec.LookPath("node")
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the validator of OpenAPI is required in CI: %v (npm install --prefix .ci/npm)", err)
		}
		t.Skipf("the validator of OpenAPI is not installed (npm install --prefix .ci/npm): %v", err)
	}
	d := startDaemon(t, `{"mcpServers": {}}`)
	_, document := d.rest("GET", "/openapi.json", "")
	validate := func(document []byte) ([]byte, error) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), node, validator, "lint", "--extends=spec", "openapi.json")
		cmd.Dir, cmd.Env = dir, environ(dir, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
		return cmd.CombinedOutput()
	}
	if out, err := validate(document); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for what, broken := range map[string][2]string{
		"a parameter that is nowhere": {`"in": "query"`, `"in": "nowhere"`},
		"a reference into nothing":    {`"#/components/schemas/Problem"`, `"#/components/schemas/Nothing"`},
		"a type that is none":         {`"type": "boolean"`, `"type": "perhaps"`},
	} {
		if out, err := validate(bytes.Replace(document, []byte(broken[0]), []byte(broken[1]), 1)); err == nil {
			t.Errorf("the validator accepts %s:\n%s", what, out)
		}
	}
}
