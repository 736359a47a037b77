package activity

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpproxy/internal/testutil/volume"
)

func TestNamesAndMessagesAreBounded(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir(), MaxResponse: 1000}, &memoryStore{})
	long := strings.Repeat("ü", 2<<20)
	whole := Record{
		Type: PolicyDecision, Status: Blocked, ServerName: "x" + long, ToolName: "x" + long, SessionID: long, RequestID: long,
		ParentID: long, Actor: long, ClientName: long, ClientVersion: long, ErrorMessage: "x" + long,
		Metadata: Metadata{ToolVariant: long, ErrorCode: long, Action: long, Detail: long, Warnings: []string{long},
			Search: &Search{Query: long, Rank: 7},
			Intent: &Intent{OperationType: long, DataSensitivity: long, Reason: long}},
	}
	if err := l.Append(&whole); err != nil {
		t.Fatal(err)
	}
	begun := Record{Type: ToolCall, ToolName: long}
	if err := l.Begin(&begun); err != nil {
		t.Fatal(err)
	}
	if err := l.End(begun.ID, Outcome{Status: Failed, ErrorMessage: long, ErrorCode: long, Warnings: []string{long}}); err != nil {
		t.Fatal(err)
	}
	if len(begun.ToolName) != len(long) {
		t.Error("the caller's record was changed")
	}
	for _, r := range listRecords(t, l) {
		for what, limited := range map[string]struct {
			text string
			most int
		}{
			"server": {r.ServerName, 64}, "tool": {r.ToolName, 256}, "session": {r.SessionID, 256}, "request": {r.RequestID, 256},
			"parent": {r.ParentID, 256}, "actor": {r.Actor, 256}, "client": {r.ClientName, 256}, "version": {r.ClientVersion, 256},
			"message": {r.ErrorMessage, 4096},
		} {
			if len(limited.text) > limited.most || !utf8.ValidString(limited.text) {
				t.Errorf("%s: got %d bytes, valid UTF-8 = %v", what, len(limited.text), utf8.ValidString(limited.text))
			}
		}
		if data, err := json.Marshal(r); err != nil || len(data) > 20<<10 {
			t.Errorf("the record has %d bytes, error: %v", len(data), err)
		}
	}
}

func TestLongArgumentsAreCut(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir(), MaxResponse: 100}, &memoryStore{})
	long := `{"text":"` + strings.Repeat("é", 5000) + `"}`
	for _, r := range []Record{
		{Type: ToolCall, Arguments: []byte(long), RequestBytes: 20_000},
		{Type: ToolCall, Arguments: []byte(`{"a":1}`), RequestBytes: 7},
	} {
		if err := l.Begin(&r); err != nil {
			t.Fatal(err)
		}
		if err := l.End(r.ID, Outcome{Status: Success}); err != nil {
			t.Fatal(err)
		}
	}
	got := listRecords(t, l)
	if cut := got[1]; !cut.ArgumentsTruncated || cut.RequestBytes != 20_000 || len(cut.Arguments) > 120 ||
		!strings.HasPrefix(string(cut.Arguments), `"{\"text\":\"éé`) {
		t.Errorf("cut record = %+v", cut)
	}
	if kept := got[0]; kept.ArgumentsTruncated || string(kept.Arguments) != `{"a":1}` {
		t.Errorf("kept record = %+v", kept)
	}
}

func TestCutMessagesHoldNoHalfOfASecret(t *testing.T) {
	secret := "ghp_" + strings.Repeat("aB3dE6", 6)
	for before := maxMessage - 45; before < maxMessage+5; before++ {
		got := maskAndClip(strings.Repeat("a ", before/2)+secret, maxMessage)
		if len(got) > maxMessage || strings.Contains(got, "ghp_aB3dE6aB3dE6") {
			t.Fatalf("%d bytes before: %q", before, got[len(got)-60:])
		}
	}
}

// TestQueriesAreMasked checks that search queries are masked and cut like all texts that callers choose.
func TestQueriesAreMasked(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir(), MaxResponse: 1000}, &memoryStore{})
	secret := "ghp_" + strings.Repeat("aB3", 12)
	r := Record{Type: ToolCall, ToolName: "t", Metadata: Metadata{Search: &Search{Query: "list repositories with " + secret, Rank: 2}}}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	got := listRecords(t, l)[0].Metadata.Search
	if got == nil || got.Rank != 2 || !strings.HasPrefix(got.Query, "list repositories with ") || strings.Contains(got.Query, secret) {
		t.Errorf("the recorded search is %+v", got)
	}
}

// BenchmarkBound measures the cost of masking and cutting during a call.
func BenchmarkBound(b *testing.B) {
	r := Record{
		Type: ToolCall, ServerName: "github", ToolName: "list_issues", SessionID: "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", RequestID: "42",
		Source: SourceMCP, Actor: "agent", ClientName: "claude-code", ClientVersion: "2.0.14", Arguments: json.RawMessage(`{"repo":"octo/hello","state":"open"}`),
		Metadata: Metadata{ToolVariant: "call_tool_read", Intent: &Intent{OperationType: "read", DataSensitivity: "internal", Reason: "To see what is open."}},
	}
	b.ReportAllocs()
	for b.Loop() {
		m := r
		maskAndLimitRecord(&m, defaultMaxResponse)
	}
}

// newSecretToken returns a token of 36 characters for a seed.
func newSecretToken(seed uint64) string {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	random := rand.New(rand.NewPCG(seed, 1))
	token := make([]byte, 36)
	for i := range token {
		token[i] = characters[random.IntN(len(characters))]
	}
	return string(token)
}

// TestNamesThatAreSecretsAreMasked checks that a secret in a name is masked in every field, and that a filter with the
// unmasked name still finds the record.
func TestNamesThatAreSecretsAreMasked(t *testing.T) {
	st := &memoryStore{}
	l := openLog(t, Options{Dir: t.TempDir()}, st)
	secret := "gh" + "p_" + newSecretToken(volume.Seed(t, 1))
	text := "the key " + secret + " is not allowed"
	r := Record{
		Type: PolicyDecision, Status: Blocked, ServerName: secret, ToolName: secret, SessionID: secret, RequestID: secret, ParentID: secret,
		Actor: secret, ClientName: secret, ClientVersion: secret, ErrorMessage: text, Arguments: json.RawMessage(`{"` + secret + `":1}`),
		Metadata: Metadata{Warnings: []string{text, "plain"}, Action: secret, Detail: text, Intent: &Intent{OperationType: secret, DataSensitivity: secret, Reason: text}},
	}
	if err := l.Append(&r); err != nil {
		t.Fatal(err)
	}
	begun := Record{Type: ToolCall, ToolName: "create_issue", RequestID: "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4"}
	if err := l.Begin(&begun); err != nil {
		t.Fatal(err)
	}
	if err := l.End(begun.ID, Outcome{Status: Failed, ErrorMessage: text, Warnings: []string{text}}); err != nil {
		t.Fatal(err)
	}
	kept := listRecords(t, l)
	for _, r := range kept {
		if data, err := json.Marshal(r); err != nil || bytes.Contains(data, []byte(secret)) {
			t.Errorf("%v: %s", err, data)
		}
	}
	if kept[0].ToolName != "create_issue" || kept[0].RequestID != begun.RequestID || kept[1].Metadata.Warnings[1] != "plain" || !strings.HasPrefix(kept[1].ToolName, "[masked github-token ") {
		t.Errorf("%+v", kept)
	}
	f := Filter{Servers: []string{secret}, Tools: []string{"x", secret}, Actors: []string{secret}, SessionID: secret, RequestID: secret}.withMaskedNames()
	if f.Servers[0] != kept[1].ServerName || f.Tools[0] != "x" || f.Tools[1] != kept[1].ToolName || f.Actors[0] != kept[1].Actor || f.SessionID != kept[1].SessionID || f.RequestID != kept[1].RequestID {
		t.Errorf("the filter %+v does not find %+v", f, kept[1])
	}
}

// TestDeclarationsAreBounded checks that an invalid declared intent is stored as masked JSON, up to a limit, and that
// the declarations of refused calls count against the same limit as their other texts.
func TestDeclarationsAreBounded(t *testing.T) {
	secret := "ghp_" + strings.Repeat("aB3dE6", 6)
	for _, declared := range []string{
		`{"intent":{"operation_type":"` + secret + `"}}`,
		`{"intent_reason":"` + strings.Repeat("é ", 1<<20) + secret + `"}`,
		`{"intent":nothing`, // invalid JSON
	} {
		r := Record{Metadata: Metadata{Intent: &Intent{OperationType: "read", Declared: json.RawMessage(declared)}}}
		theirs := r.Metadata.Intent
		maskAndLimitRecord(&r, defaultMaxResponse)
		kept := r.Metadata.Intent.Declared
		if !json.Valid(kept) || len(kept) > 2*maxMessage || strings.Contains(string(kept), secret[:12]) || string(theirs.Declared) != declared {
			t.Errorf("the declaration has %d bytes: %.200s", len(kept), kept)
		}
	}
	w := actorRefusalWindow{text: maxRefusalText}
	if m := w.toBoundedRecord(&Record{Metadata: Metadata{Intent: &Intent{Declared: json.RawMessage(`{}`)}}}, 100); m.Metadata.Intent.Declared != nil {
		t.Error("a declaration was stored although the refused client has reached its limit")
	}
}
