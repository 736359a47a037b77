package api

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

func TestInvalidValuesAreNamed(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	for _, c := range []struct {
		query, parameter, value, allowed string
	}{
		{"/activity?intent_type=delete", "intent_type", "delete", "read write destructive"},
		{"/activity?intent_type=read,delete", "intent_type", "delete", "read write destructive"},
		{"/activity?type=call", "type", "call", "tool_call policy_decision approval server_change config_change system"},
		{"/activity?status=ok", "status", "ok", "success error blocked pending interrupted"},
		{"/activity?sensitivity=secret", "sensitivity", "secret", "public internal private unknown"},
		{"/activity?limit=0", "limit", "0", "a whole number from 1 to 1000"},
		{"/activity?limit=1001", "limit", "1001", "a whole number from 1 to 1000"},
		{"/activity?limit=ten", "limit", "ten", "a whole number from 1 to 1000"},
		{"/activity?offset=-1", "offset", "-1", "a whole number from 0 to 2147483648"},
		{"/activity?offset=5&cursor=c", "offset", "5", "left out when cursor is given"},
		{"/activity?start_time=yesterday", "start_time", "yesterday", "a time such as 2026-01-15T10:30:00Z, or a date such as 2026-01-15"},
		{"/activity?start_time=2026-01-15&end_time=2026-01-14", "end_time", "2026-01-14", "a time after start_time"},
		{"/activity?limit=1&limit=2", "limit", "1, 2", "one value"},
		{"/tools?status=broken", "status", "broken", "callable "},
		{"/tools?call_with=call_tool", "call_with", "call_tool", "call_tool_read call_tool_write call_tool_destructive"},
		{"/tools?operation_type=danger", "operation_type", "danger", "read write destructive"},
		{"/tools/search?q=x&limit=101", "limit", "101", "a whole number from 1 to 100"},
		{"/servers/github/logs?lines=0", "lines", "0", "a whole number from 1 to 10000"},
	} {
		r := ask(t, s, "GET", Prefix+c.query, "")
		d := problemOf(t, r)
		var allowed []string
		for _, a := range asList(d.Details["allowed"]) {
			allowed = append(allowed, a.(string))
		}
		if r.status != 400 || d.Code != problem.InvalidParameter || d.Details["parameter"] != c.parameter || d.Details["value"] != c.value ||
			!strings.HasPrefix(strings.Join(allowed, " ")+" ", c.allowed) {
			t.Errorf("%s: %d %s", c.query, r.status, r.body)
		}
		if !strings.Contains(d.Detail, c.parameter) || !strings.Contains(d.Detail, c.value) || !strings.Contains(d.Detail, "must be") {
			t.Errorf("%s: the message is %q", c.query, d.Detail)
		}
	}
}

func asList(v any) []any { l, _ := v.([]any); return l }

func TestUnknownAndMissingParameters(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	r := ask(t, s, "GET", Prefix+"/activity?sever=github", "")
	if d := problemOf(t, r); r.status != 400 || d.Details["parameter"] != "sever" || !strings.Contains(d.Hint, "server") {
		t.Errorf("misspelt: %d %s", r.status, r.body)
	}
	r = ask(t, s, "GET", Prefix+"/tools/search", "")
	if d := problemOf(t, r); r.status != 400 || d.Details["parameter"] != "q" {
		t.Errorf("missing: %d %s", r.status, r.body)
	}
	if r = ask(t, s, "GET", Prefix+"/status?%zz", ""); problemOf(t, r).Code != problem.InvalidRequest {
		t.Errorf("broken query: %d %s", r.status, r.body)
	}
}

func TestActivityFilters(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	r := ask(t, s, "GET", Prefix+"/activity?type=tool_call,system&server=github&server=notes&tool=a,b&tool=c&status=error&session_id=s"+
		"&request_id=r&intent_type=read&sensitivity=private&actor=agent:ci&client=cursor&start_time=2026-01-15T10:30:00%2B01:00&end_time=2026-01-16&q=two+words&limit=7&offset=3", "")
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	want := activity.Filter{
		Types: []activity.Type{"tool_call", "system"}, Statuses: []activity.Status{"error"}, Servers: []string{"github", "notes"},
		Tools: []string{"a,b", "c"}, SessionID: "s", RequestID: "r", IntentTypes: []string{"read"}, Sensitivities: []string{"private"},
		Actors: []string{"agent:ci"}, Clients: []string{"cursor"}, Since: time.Date(2026, 1, 15, 9, 30, 0, 0, time.UTC), Until: time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC),
		Search: "two words", Limit: 7, Offset: 3,
	}
	if diff := cmp.Diff(want, f.filters[0], cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{`"total":7`, `"limit":7`, `"offset":3`, `"next_cursor":"next"`, `9007199254740993`} {
		if !strings.Contains(r.body, part) {
			t.Errorf("no %s in %s", part, r.body)
		}
	}
	ask(t, s, "GET", Prefix+"/activity?type=&cursor=c", "")
	if got := f.filters[1]; got.Limit != 50 || got.Cursor != "c" || got.Types != nil {
		t.Errorf("the preset filter is %+v", got)
	}
}

// A tool ID in a filter selects a server and a tool, unless the request also names a server.
func TestActivityOfAToolID(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	for _, q := range []struct {
		query          string
		servers, tools []string
	}{
		{"tool=github:a:b", []string{"github"}, []string{"a:b"}},
		{"tool=plain", nil, []string{"plain"}},
		{"tool=github:a&server=notes", []string{"notes"}, []string{"github:a"}},
		{"tool=github:a&tool=notes:b", nil, []string{"github:a", "notes:b"}},
	} {
		ask(t, s, "GET", Prefix+"/activity?"+q.query, "")
		got := f.filters[len(f.filters)-1]
		if !slices.Equal(got.Servers, q.servers) || !slices.Equal(got.Tools, q.tools) {
			t.Errorf("%s: servers %q, tools %q", q.query, got.Servers, got.Tools)
		}
	}
}

func TestToolFilters(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	ask(t, s, "GET", Prefix+"/tools?server=github&operation_type=write&status=callable", "")
	ask(t, s, "GET", Prefix+"/tools?call_with=call_tool_read", "")
	want := []ops.ToolQuery{
		{ToolFilter: ops.ToolFilter{Server: "github", Operation: "write", Status: "callable"}, Limit: 100},
		{ToolFilter: ops.ToolFilter{CallWith: "call_tool_read"}, Limit: 100}}
	if !slices.Equal(f.tools, want) {
		t.Errorf("filters %+v", f.tools)
	}
}

func TestMomentForms(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 1, 15, 9, 30, 0, 0, time.UTC)
	for _, s := range []string{"2026-01-15T09:30:00Z", "2026-01-15T10:30:00+01:00", "2026-01-15T10:30:00 01:00", "2026-01-15T09:30:00.000Z"} {
		if got, err := parseTime(s); err != nil || !got.Equal(want) {
			t.Errorf("%q = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "now", "2026-13-01", "10:30", "1768473000"} {
		if _, err := parseTime(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func FuzzReadQuery(f *testing.F) {
	f.Add("type=tool_call&limit=5")
	f.Add("limit=&limit=1&%zz")
	plan := ListActivity.deriveInputSpec()
	f.Fuzz(func(t *testing.T, raw string) {
		var q activity.Filter
		_, err := plan.readRequest(&http.Request{URL: &url.URL{RawQuery: raw}}, reflect.ValueOf(&q).Elem())
		if err != nil {
			var p *problem.Problem
			if !errors.As(err, &p) || p.Code.HTTPStatus() != 400 {
				t.Fatalf("%q gives %v", raw, err)
			}
			return
		}
		if n := q.Limit; n < 1 || n > 1000 {
			t.Fatalf("%q gives limit %d", raw, n)
		}
		values, _ := url.ParseQuery(raw)
		for _, v := range q.IntentTypes {
			if !slices.Contains(operationTypeWords(), v) {
				t.Fatalf("%v gives %q", values, v)
			}
		}
	})
}

// Every request body has an example in the document, even if its type declares none.
func TestBodiesHaveAnExample(t *testing.T) {
	for _, op := range (&Deps{Implementations: homes}).operations() {
		o := op.base()
		in := o.deriveInputSpec()
		if len(in.fieldsIn(inBody)) > 0 && !strings.Contains(in.exampleBody(), ": ") {
			t.Errorf("%s has the example %q", o.id, in.exampleBody())
		}
	}
}
