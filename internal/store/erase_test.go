package store_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// openSigningLog opens a database and a log that signs its chain.
func openSigningLog(t *testing.T, dir string) (*activity.Log, *store.SQLite) {
	t.Helper()
	db := store.OpenWithShortPauses(filepath.Join(dir, "mcpproxy.db"))
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), KeyFile: filepath.Join(dir, "activity_key"), RecentDir: filepath.Join(dir, "memory")}, db)
	if err != nil {
		t.Fatal(err)
	}
	return l, db
}

// checkVerified fails unless the verification of the whole log succeeds.
func checkVerified(t *testing.T, l *activity.Log) activity.Verification {
	t.Helper()
	v, err := l.Verify(t.Context())
	if err != nil || !v.OK {
		t.Fatalf("%+v, %+v, %v", v, v.FirstBreak, err)
	}
	return v
}

var secretFields = []activity.ErasableField{"arguments", "response", "reason", "query", "warnings", "declared", "error_message"}

// secretCall records a call with a unique word in each field.
func secretCall(t *testing.T, l *activity.Log, word string) activity.Record {
	t.Helper()
	r := activity.Record{Type: activity.ToolCall, ServerName: "notes", ToolName: "read", Arguments: []byte(`{"a":"in` + word + `arguments"}`),
		Metadata: activity.Metadata{Intent: &activity.Intent{OperationType: "read", Reason: "in" + word + "reason", Declared: []byte(`{"in` + word + `declared":1}`)},
			Search: &activity.Search{Query: "in" + word + "query", Rank: 1}, Warnings: []string{"in" + word + "warnings"}}}
	if err := l.Begin(&r); err != nil {
		t.Fatal(err)
	}
	if err := l.End(r.ID, activity.Outcome{Status: activity.Failed, ErrorMessage: "in" + word + "message", Warnings: []string{"in" + word + "more"},
		Response: []byte(`{"b":"in` + word + `response` + strings.Repeat("in"+word+"x ", 2000) + `"}`)}); err != nil {
		t.Fatal(err)
	}
	return r
}

// filesContaining returns the files in a directory tree that contain a text.
func filesContaining(t *testing.T, dir, text string) (in []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			in = append(in, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestErasedFieldsAreGone erases every field of records in indexed chunks and of new records. It checks that no file
// contains the fields, that no search finds them, that the chain verifies, and that other records are unchanged.
func TestErasedFieldsAreGone(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "memory"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, db := openSigningLog(t, dir)
	old := secretCall(t, l, "hunter")
	other := secretCall(t, l, "gatherer")
	addCalls(t, l, 2500)
	if p, err := l.List(t.Context(), activity.Filter{Search: "inhunterreason"}); err != nil || p.Total != 1 { // this search writes the index
		t.Fatalf("%+v, %v", p, err)
	}
	young := secretCall(t, l, "hunter")
	for _, id := range []string{old.ID, young.ID} {
		r, err := l.EraseFields(t.Context(), activity.Record{Actor: "admin", Source: activity.SourceCLI}, id, secretFields)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Erased) != len(secretFields) || r.Arguments != nil || r.Response != nil || r.ErrorMessage != "" || r.Metadata.Warnings != nil ||
			r.Metadata.Intent.Reason != "" || r.Metadata.Intent.OperationType != "read" || time.Since(r.Erased[0].At) > time.Minute || r.Status != activity.Failed {
			t.Errorf("%+v", r)
		}
	}
	left, err := l.Get(t.Context(), other.ID)
	if err != nil || !strings.Contains(string(left.Response), "ingathererresponse") || left.Erased != nil {
		t.Errorf("%+v, %v", left, err)
	}
	for _, word := range []string{"inhunterarguments", "inhunterresponse", "inhunterreason", "inhuntermessage", "inhunterx"} {
		if p, err := l.List(t.Context(), activity.Filter{Search: word}); err != nil || p.Total != 0 {
			t.Errorf("a search for %s found %d records, %v", word, p.Total, err)
		}
	}
	if p, err := l.List(t.Context(), activity.Filter{Search: "ingathererreason"}); err != nil || p.Total != 1 {
		t.Errorf("the search found %d records, %v", p.Total, err)
	}
	if in := filesContaining(t, dir, "inhunter"); in != nil {
		t.Errorf("the erased text is still in %v", in)
	}
	if in := filesContaining(t, dir, "ingatherer"); len(in) < 3 {
		t.Errorf("the test searches the wrong files: %v", in)
	}
	checkVerified(t, l)
	p, err := l.List(t.Context(), activity.Filter{Types: []activity.Type{activity.System}, Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Records[0]; r.Metadata.Action != "redact" || r.Metadata.Redacted.ID != young.ID || len(r.Metadata.Redacted.Fields) != len(secretFields) || r.Actor != "admin" {
		t.Errorf("%+v", r)
	}
	if again, err := l.EraseFields(t.Context(), activity.Record{}, old.ID, secretFields[:1]); err != nil || len(again.Erased) != len(secretFields) {
		t.Errorf("%+v, %v", again, err)
	}
	closeLogAndDB(t, l, db)
	l, db = openSigningLog(t, dir)
	defer closeLogAndDB(t, l, db)
	checkVerified(t, l)
	if in := filesContaining(t, dir, "inhunter"); in != nil {
		t.Errorf("the erased text is still in %v", in)
	}
}

// TestUnerasableFields tests a running call, a field that does not exist, and a record of an earlier version.
func TestUnerasableFields(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	l, db := openSigningLog(t, dir)
	defer closeLogAndDB(t, l, db)
	open := activity.Record{Type: activity.ToolCall, Arguments: []byte(`1`)}
	if err := l.Begin(&open); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		id    string
		field activity.ErasableField
		code  problem.Code
	}{{open.ID, "arguments", problem.Conflict}, {secretCall(t, l, "x").ID, "nothing", problem.InvalidParameter}, {"01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", "arguments", problem.NotFound}} {
		_, err := l.EraseFields(t.Context(), activity.Record{}, tt.id, []activity.ErasableField{tt.field})
		if p, ok := errors.AsType[*problem.Problem](err); !ok || p.Code != tt.code {
			t.Errorf("%s: got %v, want %s", tt.field, err, tt.code)
		}
	}
}

// unpackKilledLog unpacks the files of an earlier version whose process was killed.
func unpackKilledLog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob("testdata/before-proof/*.gz")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "spool"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		packed, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer packed.Close()
		r, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".gz")
		if strings.HasSuffix(name, ".spool") {
			name = filepath.Join("spool", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestLogOfAnOldVersion opens a log of a version whose entries had no erasable part. Its process was killed, and five
// records are only in the spool.
func TestLogOfAnOldVersion(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := unpackKilledLog(t)
	l, db := openSigningLog(t, dir)
	addCalls(t, l, 10)
	v := checkVerified(t, l)
	p, err := l.List(t.Context(), activity.Filter{Limit: 100})
	if err != nil || v.Records != p.Total || p.Total != 40+1+5+10+1 { // the last one is the key
		t.Fatalf("got %d records, %d verified, %v", p.Total, v.Records, err)
	}
	interrupted := 0
	for _, r := range p.Records {
		if r.Status == activity.Interrupted {
			interrupted++
		}
	}
	first := p.Records[len(p.Records)-1]
	if string(first.Arguments) != "{\"n\":\t0,\"text\":\"old arguments\"}" || first.Metadata.Intent.Reason != "an old reason" || string(first.Metadata.Intent.Declared) != `{"intent":"write"}` ||
		first.Metadata.Search.Query != "words" || first.Metadata.Warnings[0] != "one" || !strings.Contains(string(first.Response), "old response") || interrupted != 1 {
		t.Errorf("first record = %+v, %d interrupted", first, interrupted)
	}
	if p, err := l.List(t.Context(), activity.Filter{Search: "failed old"}); err != nil || p.Total != 9 {
		t.Errorf("got %d records, %v", p.Total, err)
	}
	_, err = l.EraseFields(t.Context(), activity.Record{}, first.ID, []activity.ErasableField{"arguments"})
	if p, ok := errors.AsType[*problem.Problem](err); !ok || p.Code != problem.Conflict {
		t.Errorf("got %v", err)
	}
	closeLogAndDB(t, l, db)
	l, db = openSigningLog(t, dir)
	checkVerified(t, l)
	closeLogAndDB(t, l, db)
	raw := openSQL(t, filepath.Join(dir, "mcpproxy.db"))
	for key, want := range map[int]string{3: "it failed of old", 40: "refused of old"} {
		var said string
		if err := raw.QueryRow("SELECT error FROM activity_record WHERE key = ?", key).Scan(&said); err != nil || said != want {
			t.Errorf("%q, %v", said, err)
		}
	}
}
