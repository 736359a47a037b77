package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/problem"
)

func TestSetKeys(t *testing.T) {
	raw := func(pairs ...string) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		for i := 0; i < len(pairs); i += 2 {
			if m[pairs[i]] = nil; pairs[i+1] != "" {
				m[pairs[i]] = json.RawMessage(pairs[i+1])
			}
		}
		return m
	}
	for name, one := range map[string]struct {
		before string
		set    map[string]json.RawMessage
		after  string
	}{
		"no file":           {"", raw("tools_limit", "5"), "{\n  \"tools_limit\": 5\n}\n"},
		"a member":          {"{ // a\r\n\t\"log\": { \"level\": \"warn\" } // b\r\n}", raw("log.level", `"debug"`, "log.format", `"json"`), "{ // a\r\n\t\"log\": { \"level\": \"debug\", \"format\": \"json\" } // b\r\n}"},
		"a group":           {`{"tools_limit": 5}`, raw("intent_declaration.require_intent", "true"), `{"tools_limit": 5, "intent_declaration": {"require_intent": true}}`},
		"taken out":         {"{\n  \"tools_limit\": 5, // five\n  \"queue_size\": 7\n}", raw("tools_limit", "", "queue_size", "8"), "{\n  \"queue_size\": 8\n}"},
		"what is not there": {`{}`, raw("tools_limit", "", "log.level", ""), `{}`},
		"a list":            {`{"trusted_hosts": ["a" /* first */]}`, raw("trusted_hosts", `["b", "c"]`), `{"trusted_hosts": ["b", "c"]}`},
	} {
		f := open(t, one.before)
		data, err := f.ReadFile()
		if err != nil {
			t.Fatal(err)
		}
		if err := f.SetConfigKeys(nil, ETag(data), one.set, "somebody"); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(one.after, contents(t, f.path)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if inForce := f.AppliedText(); inForce.ETag() != ETag([]byte(one.after)) || one.after != one.before && inForce.By != "somebody" {
			t.Errorf("%s: applied text %s, by %s", name, inForce.Data, inForce.By)
		}
	}
}

// TestReplaceTextOfAnotherText checks that a file that a user saves in the meantime, however late, is not
// overwritten.
func TestReplaceTextOfAnotherText(t *testing.T) {
	var applied []string
	f := open(t, limit(1), func(o *Options) {
		o.Applied = func(in AppliedText) { applied = append(applied, fmt.Sprint(in.By, in.Keys)) }
	})
	etag := f.AppliedText().ETag()
	for _, err := range []error{f.ReplaceText(nil, "none", []byte(limit(9)), "x"), f.ReplaceText(nil, "", []byte(limit(9)), "x")} {
		if p := problem.From(err); err == nil || p.Code != problem.Conflict || p.Detail("etag") != etag || contents(t, f.path) != limit(1) {
			t.Errorf("%v\n%s", err, contents(t, f.path))
		}
	}
	f.components = []ReloadableComponent{hooks{prepare: func(*Config) error { write(t, f.path, limit(3)); return nil }, commit: func(*Config) { t.Error("committed") }}}
	err := f.ReplaceText(nil, etag, []byte(limit(2)), "x")
	if p := problem.From(err); err == nil || p.Code != problem.Conflict || p.Detail("etag") != ETag([]byte(limit(3))) || contents(t, f.path) != limit(3) {
		t.Errorf("%v\n%s", err, contents(t, f.path))
	}
	f.components = nil
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := f.ReplaceText(nil, f.AppliedText().ETag(), []byte(limit(4)+"// words"), "somebody"); err != nil || f.Current().ToolsLimit != 4 {
		t.Errorf("%v", err)
	}
	if err := f.ReplaceText(nil, f.AppliedText().ETag(), []byte(limit(4)), "somebody"); err != nil {
		t.Error(err)
	}
	if want := []string{"file[tools_limit]", "somebody[tools_limit]", "somebody[]"}; !slices.Equal(applied, want) {
		t.Errorf("applied %v, want %v", applied, want)
	}
}

func TestDifferences(t *testing.T) {
	a := mustParse(t, `{"log": {"level": "warn"}, "api_key": "0123456789abcdefgh", "mcpServers": {"a": {"command": "x", "env": {"A": "one"}}, "gone": {"url": "http://h/"}}}`)
	b := mustParse(t, `{"tools_limit": 3, "api_key": "0123456789abcdefgi", "mcpServers": {"new": {"command": "y", "trust": "auto"}, "a": {"command": "z", "env": {"A": "two"}, "enabled": false}}}`)
	var got []string
	for _, d := range findDifferences(a, b) {
		got = append(got, fmt.Sprintf("%s: %s → %s", d.Key, d.From, d.To))
	}
	want := []string{
		`api_key: "***" → "***"`, `tools_limit: 10 → 3`, `log.level: "warn" → "info"`,
		`mcpServers.a.command: "x" → "z"`, `mcpServers.a.env: {"A":"***"} → {"A":"***"}`, `mcpServers.a.enabled: true → false`,
		`mcpServers.gone: {"protocol":"http","url":"http://h/","trust":"scan"} → null`, `mcpServers.new: null → {"protocol":"stdio","command":"y","trust":"auto"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := findDifferences(a, a); got != nil {
		t.Errorf("differences between equal configurations: %v", got)
	}
	one, other := mustParse(t, `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}`), mustParse(t, `{"mcpServers": {"b": {"command": "x"}, "a": {"command": "x"}}}`)
	if got := findDifferences(one, other); len(got) != 1 || got[0].Key != "mcpServers" || string(got[0].To) != `["b","a"]` {
		t.Errorf("differences of another server order: %s", got)
	}
}

// TestSettingsMatchTheReference checks that each key of the reference is a setting with the same texts.
func TestSettingsMatchTheReference(t *testing.T) {
	reference := string(Reference())
	for _, s := range ListSettings(DefaultConfig(), []byte(`{"log": {"level": "warn"}, "tools_limit": 5}`)) {
		if !strings.Contains(reference, "| `"+s.Key+"` |") || !strings.Contains(reference, s.Doc) || s.Default == nil || s.Type == "" {
			t.Errorf("%+v", s)
		}
		if want := s.Key == "log.level" || s.Key == "tools_limit"; s.Set != want {
			t.Errorf("%s: Set is %v", s.Key, s.Set)
		}
		if err := CheckSettableKey(s.Key); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"mcpServers", "mcpServers.a", "log", "$schema", "tool_limit", ""} {
		if CheckSettableKey(name) == nil {
			t.Errorf("%q is accepted as a setting", name)
		}
	}
}
