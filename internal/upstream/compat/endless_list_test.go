//go:build unix

package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// pagingServer is a server over HTTP that answers each list with page, which gets the cursor as JSON.
func pagingServer(t *testing.T, modern bool, page func(cursor string) string) string {
	opt := mcptest.Options{NoStream: true, Modern: modern, Capabilities: `{"tools":{},"prompts":{},"resources":{}}`}
	s := mcptest.New(opt, mcptest.Tool{Definition: mcptest.ToolDefinition("a")})
	return mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := wirejson.ParseServerMessage(body)
		if !strings.HasSuffix(m.Method, "/list") {
			r.Body = io.NopCloser(bytes.NewReader(body))
			s.ServeHTTP(w, r)
			return
		}
		result := page(string(wirejson.Find(m.Params, "cursor")))
		if modern {
			result = strings.TrimSuffix(result, "}") + `,"resultType":"complete","ttlMs":0,"cacheScope":"private"}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(wirejson.AppendResult(nil, m.ID, json.RawMessage(result)))
	})).URL
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}`

// listAll lists as a client does that follows each cursor, and returns the cursors.
func (f *fixture) listAll(t *testing.T, c *Session, method, meta string) (cursors []string) {
	t.Helper()
	cursor := ""
	for range 100 {
		reply, err := f.Relay(t.Context(), "s", c, session.Request{ID: json.RawMessage("1"), Method: method, Params: json.RawMessage(`{` + cursor + meta + `}`)})
		if err != nil || reply.Error != nil {
			t.Fatalf("%v %+v", err, reply.Error)
		}
		next := string(wirejson.Find(reply.Result, "nextCursor"))
		if next == "" {
			return cursors
		}
		cursors, cursor = append(cursors, next), `"cursor":`+next+`,`
	}
	t.Fatal("the list does not end")
	return nil
}

// TestCircularCursors: a client that follows the cursors of a server's list reaches an end even if the cursors form a
// circle, and gets a warning. Other lists are unchanged.
func TestCircularCursors(t *testing.T) {
	t.Parallel()
	empty := func(next string) string {
		return `{"tools":[],"prompts":[],"resources":[],"resourceTemplates":[],"nextCursor":` + next + `}`
	}
	long := make([]string, 40)
	for i := range long {
		long[i] = fmt.Sprint(`"`, i+1, `"`)
	}
	for name, one := range map[string]struct {
		page    func(cursor string) string
		cursors []string
		circle  bool
	}{
		"the same on each page": {func(string) string { return empty(`"8"`) }, []string{`"8"`}, true},
		"a number":              {func(string) string { return empty(`8`) }, []string{`8`}, true},
		"in other letters": {func(cursor string) string {
			return empty(map[bool]string{true: `"8"`, false: `"\u0038"`}[cursor == ""])
		}, []string{`"8"`}, true},
		"three in a circle": {func(cursor string) string {
			return empty(map[string]string{"": `"x"`, `"x"`: `"y"`, `"y"`: `"z"`, `"z"`: `"x"`}[cursor])
		}, []string{`"x"`, `"y"`, `"z"`}, true},
		"a circle behind two pages": {func(cursor string) string {
			return empty(map[string]string{"": `"1"`, `"1"`: `"2"`, `"2"`: `"3"`, `"3"`: `"2"`}[cursor])
		}, []string{`"1"`, `"2"`, `"3"`}, true},
		"many pages": {func(cursor string) string {
			n := 0
			_, _ = fmt.Sscanf(cursor, `"%d"`, &n)
			if n == len(long) {
				return `{"tools":[],"prompts":[],"resources":[],"resourceTemplates":[]}`
			}
			return empty(long[n])
		}, long, false},
	} {
		for _, modernServer := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", modern ", modernServer), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: pagingServer(t, modernServer, one.page)}})
				f.until(t, "it is ready", func() bool { s, _ := f.State("s"); return s.Phase == Ready })
				for _, method := range []string{mcp.ListTools, mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates} {
					for range 2 {
						legacy := f.listAll(t, f.converse(t, "s"), method, `"_meta":{}`)
						modern := f.listAll(t, nil, method, modernMeta)
						if !slices.Equal(legacy, one.cursors) || !slices.Equal(modern, one.cursors) {
							t.Errorf("%s: legacy %q, modern %q, want %q", method, legacy, modern, one.cursors)
						}
					}
				}
				said := strings.Join(f.Deviations("s"), "; ")
				if strings.Contains(said, "same next page of its tools") != one.circle || strings.Contains(said, "same next page of its elements") != one.circle {
					t.Errorf("warnings %q", said)
				}
			})
		}
	}
}

// TestPagesOfClientsThatListTogether: clients that are at different pages of a list do not end each other's.
func TestPagesOfClientsThatListTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: pagingServer(t, true, func(cursor string) string {
		n := 0
		_, _ = fmt.Sscanf(cursor, `"%d"`, &n)
		if n == 20 {
			return `{"prompts":[],"tools":[]}`
		}
		return fmt.Sprintf(`{"prompts":[],"tools":[],"nextCursor":"%d"}`, n+1)
	})}})
	f.until(t, "it is ready", func() bool { s, _ := f.State("s"); return s.Phase == Ready })
	var at [7]int
	turns := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		i := turns.IntN(len(at))
		cursor := ""
		if at[i] > 0 {
			cursor = fmt.Sprintf(`"cursor":"%d",`, at[i])
		}
		reply, err := f.Relay(t.Context(), "s", nil, session.Request{ID: json.RawMessage("1"), Method: mcp.ListPrompts, Params: json.RawMessage(`{` + cursor + modernMeta + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		if more := wirejson.Find(reply.Result, "nextCursor") != nil; more != (at[i] < 20) {
			t.Fatalf("client %d, page %d: more %v", i, at[i], more)
		}
		at[i] = (at[i] + 1) % 21
	}
}
