package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
)

// asking maps the four tools of the test server that send requests to their client to these requests. The modern
// protocol has no requests from the server.
var asking = map[string]string{
	"test_sampling":    `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}],"maxTokens":100}}`,
	"test_elicitation": elicit("Please answer", `"username":{"type":"string","description":"Your preferred username"}`),
	"test_elicitation_sep1034_defaults": elicit("Test defaults for primitives", `"name":{"type":"string","default":"John Doe"},`+
		`"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},`+
		`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}`),
	"test_elicitation_sep1330_enums": elicit("Test enum schemas", `"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},`+
		`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},`+
		`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},`+
		`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},`+
		`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]}}`),
}

func elicit(message, properties string) string {
	return fmt.Sprintf(`{"method":"elicitation/create","params":{"mode":"form","message":%q,"requestedSchema":{"type":"object","properties":{%s}}}}`, message, properties)
}

// modernOnly is a server in front of the test server. It rejects the legacy protocol. For the four tools it behaves
// like a modern server: it returns input_required twice before the result, and requires its state back.
func modernOnly(t testing.TB, behind string) (address string) {
	t.Helper()
	to, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	proxy.FlushInterval = -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // the client has disconnected
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		params := wirejson.Find(body, "params")
		name, _ := wirejson.String(wirejson.Find(params, "name"))
		question := asking[name]
		switch {
		case r.Header.Get("Mcp-Protocol-Version") != modernRevision:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":""}}}`)
		case question != "" && r.Header.Get("Mcp-Method") == "tools/call":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, wirejson.Find(body, "id"), askModern(params, question))
		default:
			r.Host, r.Body = to.Host, io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + to.Path
}

// askModern returns a question, then a second request to retry, and then the answers.
func askModern(params json.RawMessage, question string) string {
	answer := wirejson.Find(wirejson.Find(params, "inputResponses"), "the question")
	state, _ := wirejson.String(wirejson.Find(params, "requestState"))
	switch {
	case answer == nil && state == "":
		return `{"resultType":"input_required","requestState":"first"}`
	case answer == nil && state == "first":
		return `{"resultType":"input_required","inputRequests":{"the question":` + question + `},"requestState":"second"}`
	case answer != nil && state == "second":
		text, _ := json.Marshal("Elicitation result: " + string(answer)) // encoding a string does not fail
		return `{"resultType":"complete","content":[{"type":"text","text":` + string(text) + `}]}`
	}
	return `{"resultType":"complete","isError":true,"content":[{"type":"text","text":"the state is wrong"}]}`
}
