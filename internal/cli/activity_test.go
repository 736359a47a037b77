package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

func TestFilters(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	w := newEnvWithDaemon(t, f)
	got := w.runCommand("activity", "list", "--type", "tool_call,system", "--server", "github", "--server", "notes", "--tool", "a:b", "--status", "error",
		"--session", "s", "--request-id", "r", "--intent-type", "read,write", "--sensitivity", "private", "--actor", "agent:ci", "--client", "cursor",
		"--since", "2h", "--until", "2026-01-15 10:30:00", "--search", "two words", "--limit", "7", "--cursor", "c")
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	want := activity.Filter{
		Types: []activity.Type{"tool_call", "system"}, Servers: []string{"github", "notes"}, Tools: []string{"a:b"}, Statuses: []activity.Status{"error"},
		SessionID: "s", RequestID: "r", IntentTypes: []string{"read", "write"}, Sensitivities: []string{"private"}, Actors: []string{"agent:ci"}, Clients: []string{"cursor"},
		Since: parseRFC3339("2026-01-15T08:00:00Z"), Until: parseRFC3339("2026-01-15T09:30:00Z"), Search: "two words", Limit: 7, Cursor: "c",
	}
	if diff := cmp.Diff(want, f.filters[0]); diff != "" {
		t.Error(diff)
	}
	w.runCommand("activity", "list", "--tool", "github:create_issue", "--type", "all", "--start-time", "2026-01-15", "--end-time", "2026-01-16T00:00:00Z")
	want = activity.Filter{Servers: []string{"github"}, Tools: []string{"create_issue"}, Since: parseRFC3339("2026-01-14T23:00:00Z"), Until: parseRFC3339("2026-01-16T00:00:00Z"), Limit: 50}
	if diff := cmp.Diff(want, f.filters[1]); diff != "" {
		t.Error(diff)
	}
}

// An export of a status selects the records that the list of this status shows. An export without a filter has every record.
func TestExportSelectsAsTheList(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	w := newEnvWithDaemon(t, f)
	for _, c := range []struct {
		line string
		want activity.Filter
		note bool
	}{
		{"activity export --status blocked", activity.Filter{Types: []activity.Type{activity.ToolCall, activity.PolicyDecision}, Statuses: []activity.Status{activity.Blocked}}, true},
		{"activity export --status blocked --type all", activity.Filter{Statuses: []activity.Status{activity.Blocked}}, false},
		{"activity export --status blocked --type system", activity.Filter{Types: []activity.Type{"system"}, Statuses: []activity.Status{activity.Blocked}}, false},
		{"activity export", activity.Filter{}, false},
	} {
		f.filters = nil
		got := w.runCommand(strings.Fields(c.line)...)
		if got.code != 0 || got.stdout != "id\n" || strings.Contains(got.stderr, "--type all") != c.note || len(f.filters) != 1 {
			t.Fatalf("%s: %+v", c.line, got)
		}
		if diff := cmp.Diff(c.want, f.filters[0]); diff != "" {
			t.Errorf("%s: %s", c.line, diff)
		}
	}
}

func TestDaemonRejectsFilterValues(t *testing.T) {
	t.Parallel()
	got := newEnvWithDaemon(t, &fakeOperations{}).runCommand("activity", "list", "--intent-type", "delete")
	if got.code != problem.ExitUsage || got.stderr != "Error: Invalid value 'delete' for intent_type: must be read, write, or destructive\n" {
		t.Errorf("%+v", got)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	r := &invocation{Deps: Deps{Now: func() time.Time { return parseRFC3339("2026-01-15T10:00:00Z") }, Local: time.FixedZone("test", 3600)}}
	for s, want := range map[string]string{
		"2h": "2026-01-15T08:00:00Z", "90s": "2026-01-15T09:58:30Z", "1h30m": "2026-01-15T08:30:00Z", "1d": "2026-01-14T10:00:00Z", "2w": "2026-01-01T10:00:00Z",
		"2026-01-15": "2026-01-14T23:00:00Z", "2026-01-15 10:30": "2026-01-15T09:30:00Z", "2026-01-15T10:30:00Z": "2026-01-15T10:30:00Z",
	} {
		if got, err := r.parseTimeFlag("--since", s); err != nil || !got.Equal(parseRFC3339(want)) {
			t.Errorf("%s = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"-2h", "tomorrow", "99999999999w", "w", "1.5d", "2026-02-30"} {
		if got, err := r.parseTimeFlag("--since", s); err == nil {
			t.Errorf("%s = %v", s, got)
		}
	}
}

func TestUniqueIDLength(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ids  []string
		want int
	}{
		{nil, 10},
		{[]string{"01JG2K4AAAAAAAAAAAAAAAAAAA"}, 10},
		{[]string{"01JG2K4AABCCCCCCCCCCCCCCCC", "01JG2K4AABCDDDDDDDDDDDDDDD", "01JG2K3ZZZZZZZZZZZZZZZZZZZ"}, 12},
		{[]string{"01JG2K4AAAAAAAAAAAAAAAAAAA", "01JG2K4AAAAAAAAAAAAAAAAAAB"}, 26},
	} {
		var records []activity.Record
		for _, id := range c.ids {
			records = append(records, activity.Record{ID: id})
		}
		if got := uniqueIDLength(records); got != c.want {
			t.Errorf("%v: %d, want %d", c.ids, got, c.want)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	got := w.runCommand("activity", "summary", "--group", "client")
	want := `From      2026-01-14 11:00:00
To        2026-01-15 11:00:00
Calls     40
Refused   3
Failed    5 (4 by the tool, 1 by the server)
Duration  p50 12ms, p95 340ms
Own time  p50 210µs, p95 900µs

CLIENT                      CALLS  REFUSED  FAILED  ERRORS   P50    P95  OWN P50  LAST
client github:create_issue     30        3       3   10.0%  15ms  500ms    200µs  2026-01-15 10:00:00
-                              10        0       0    0.0%   0ms    0ms       0s
`
	if got.code != 0 || got.stdout != want {
		t.Errorf("%+v\nwant\n%s", got, want)
	}
	if got := w.runCommand("activity", "watch", "--type", "calls"); got.code != problem.ExitUsage || !strings.Contains(got.stderr, "tool_call") {
		t.Errorf("%+v", got)
	}
}

// A wrong key is not a changed export or log, and a key of the wrong form is a usage error.
func TestVerifyWithAnotherKey(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	signer, other := strings.Repeat("a1", 32), strings.Repeat("0", 64)
	file := filepath.Join(t.TempDir(), "log.jsonl")
	end := `{"end":{"format":1,"chain":"c","seq":3,"hash":"` + other + `","signer":"` + signer + `"},"signature":"00"}` + "\n"
	if err := os.WriteFile(file, []byte(end), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"activity", "verify", file}, {"activity", "verify"}} {
		got := w.runCommand(append(args, "--key", other)...)
		if got.code != 1 || !strings.Contains(got.stderr, "do not match this key") || !strings.Contains(got.stderr, signer) || strings.Contains(got.stderr, "was changed") {
			t.Errorf("%v: %+v", args, got)
		}
		for _, key := range []string{signer[:10], signer[:63] + "g", strings.ToUpper(signer), "6c1f8d0e93…"} {
			if got := w.runCommand(append(args, "--key", key)...); got.code != problem.ExitUsage || !strings.Contains(got.stderr, "64 hexadecimal digits") {
				t.Errorf("%v %s: %+v", args, key, got)
			}
		}
	}
}
