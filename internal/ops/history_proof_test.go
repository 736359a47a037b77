package ops_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/ops"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// instance returns a signing log with n records of all kinds. Fields of some records are erased.
func instance(t *testing.T, n int) (*activity.Log, *ops.ActivityHistory, *store.SQLite) {
	t.Helper()
	dir := t.TempDir()
	db := store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), KeyFile: filepath.Join(dir, "key")}, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(t.Context()), db.Close()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	var open, done []string
	end := func(id string, i int) {
		o := activity.Outcome{Status: activity.Success, Response: fmt.Appendf(nil, `{"content":[{"type":"text","text":"answer %d <é>"}]}`, i), ResponseBytes: 50}
		if i%7 == 0 {
			o = activity.Outcome{Status: activity.Failed, ErrorCode: "TIMEOUT", ErrorMessage: "it took too long", Warnings: []string{"late"}}
		}
		if err := l.End(id, o); err != nil {
			t.Fatal(err)
		}
		done = append(done, id)
	}
	for i := range n {
		switch {
		case i%11 == 5:
			r := activity.Record{ServerName: "notes", ToolName: fmt.Sprint("t", i%50), Actor: "agent", ErrorMessage: "no", Arguments: []byte(`{"x":1}`)}
			if err := l.AppendRefusal(&r); err != nil {
				t.Fatal(err)
			}
		case i%13 == 7:
			put(t, l, activity.Record{Type: activity.ConfigChange, Status: activity.Success, Metadata: activity.Metadata{Action: "reload", Detail: "tools_limit"}})
		default:
			r := call("notes", "", "read")
			r.Arguments = fmt.Appendf(nil, `{"n": %d, "text": "hello \"you\""}`, i)
			r.Metadata.ToolVariant = "call_tool_read"
			if err := l.Begin(&r); err != nil {
				t.Fatal(err)
			}
			if open = append(open, r.ID); len(open) > 5 {
				k := i % len(open)
				end(open[k], i)
				open = append(open[:k], open[k+1:]...)
			}
		}
	}
	for i := 0; i < 5 && i*97 < len(done); i++ {
		if _, err := l.EraseFields(t.Context(), activity.Record{Actor: "admin"}, done[i*97], []activity.ErasableField{activity.FieldArguments, activity.FieldReason}); err != nil {
			t.Fatal(err)
		}
	}
	return l, ops.NewActivityHistory(l, nil), db
}

func verify(t *testing.T, text string) ops.ExportVerification {
	t.Helper()
	v, err := ops.VerifyExport(strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestExportVerifies checks that exports can be verified: complete, without bodies, filtered and after pruning.
func TestExportVerifies(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	records := int64(volume.FullOrQuick(9000, 1500))
	l, h, db := instance(t, int(records))
	whole, _ := export(t, h, ops.ExportQuery{Bodies: true})
	v := verify(t, whole)
	if !v.OK || v.Filtered || !v.Bodies || v.Signer != l.SigningKey().String() || v.Withheld != 0 || v.Erased != 10 || v.Linked != v.Entries || v.Records < records*9/10 {
		t.Errorf("%+v, %+v", v, v.FirstBreak)
	}
	if again, err := ops.VerifyExport(strings.NewReader(whole), strings.Repeat("0", 64)); err != nil || again.OK || !strings.Contains(again.FirstBreak.Reason, l.SigningKey().String()) {
		t.Errorf("with another key: %+v, %v", again, err)
	}
	if strings.Contains(whole, `"n\": 0,`) || !strings.Contains(whole, `"n\": 600,`) {
		t.Error("the export contains an erased field")
	}
	var last struct {
		Proof  json.RawMessage   `json:"proof"`
		Erased []activity.Erased `json:"erased"`
	}
	for line := range strings.Lines(whole) {
		if strings.Contains(line, `"erased":`) {
			if err := json.Unmarshal([]byte(line), &last); err != nil || len(last.Erased) != 2 || last.Proof == nil {
				t.Errorf("%s, %v", line, err)
			}
		}
	}
	if last.Erased == nil {
		t.Error("no record reports an erasure")
	}
	short, _ := export(t, h, ops.ExportQuery{})
	if v := verify(t, short); !v.OK || v.Bodies || v.Withheld < records || v.Linked != v.Entries || strings.Contains(short, "answer ") {
		t.Errorf("%+v, %+v", v, v.FirstBreak)
	}
	some, _ := export(t, h, ops.ExportQuery{Bodies: true, Filter: activity.Filter{Statuses: []activity.Status{activity.Failed}}})
	if v := verify(t, some); !v.OK || !v.Filtered || v.Records == 0 || v.Linked >= v.Entries {
		t.Errorf("%+v, %+v", v, v.FirstBreak)
	}
	none, _ := export(t, h, ops.ExportQuery{Filter: activity.Filter{Servers: []string{"nobody"}}})
	if v := verify(t, none); !v.OK || v.Records != 0 {
		t.Errorf("%+v, %+v", v, v.FirstBreak)
	}
	for more := true; more; {
		var err error
		if more, err = db.Tidy(t.Context(), time.Now(), activity.Retention{MaxRecords: records / 3, Signer: l.SigningKey()}, false); err != nil {
			t.Fatal(err)
		}
	}
	rest, _ := export(t, h, ops.ExportQuery{})
	if v := verify(t, rest); !v.OK || v.Records > records*4/9 {
		t.Errorf("%+v, %+v", v, v.FirstBreak)
	}
	if v, err := l.Verify(t.Context()); err != nil || !v.OK {
		t.Errorf("%+v, %v", v.FirstBreak, err)
	}
	unsigned := strings.NewReplacer(`,"pruned":true,"key":`, `,"key":`).Replace(rest)
	if v := verify(t, unsigned); v.OK {
		t.Error("an export with an unsigned start was verified")
	}
}

// TestMutationsOfAnExport changes an export at random and checks that every change is detected. MCPPROXY_MUTATIONS sets
// the number of changes.
func TestMutationsOfAnExport(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	records, n := volume.FullOrQuick(10_000, 1500), volume.FullOrQuick(30, 15)
	if set, err := strconv.Atoi(os.Getenv("MCPPROXY_MUTATIONS")); err == nil {
		n = set
	}
	_, h, _ := instance(t, records)
	_, other, _ := instance(t, volume.FullOrQuick(2000, 300))
	var texts []string
	for _, q := range []ops.ExportQuery{{Bodies: true}, {}, {Filter: activity.Filter{Statuses: []activity.Status{activity.Success}}, Bodies: true}} {
		text, _ := export(t, h, q)
		texts = append(texts, text)
		if v := verify(t, text); !v.OK {
			t.Fatalf("%+v", v.FirstBreak)
		}
	}
	foreign, _ := export(t, other, ops.ExportQuery{Bodies: true})
	theirs := strings.SplitAfter(strings.TrimSuffix(foreign, "\n"), "\n")
	seed := volume.Seed(t, 1)
	random := rand.New(rand.NewPCG(seed, 1))
	kinds := map[string]int{}
	for i := range n {
		text := texts[i%len(texts)]
		kind, mutated := mutate(random, text, theirs)
		if mutated == text {
			continue
		}
		kinds[kind]++
		v := verify(t, mutated)
		if v.OK || v.FirstBreak == nil || v.FirstBreak.Reason == "" {
			t.Fatalf("seed %d: mutation %d (%s) is not detected: %+v", seed, i, kind, v)
		}
		if v.FirstBreak.Seq == 0 && v.FirstBreak.ID == "" && v.Line == 0 {
			t.Errorf("seed %d, mutation %d (%s): the first break is missing: %+v", seed, i, kind, v.FirstBreak)
		}
	}
	t.Logf("seed %d: %v", seed, kinds)
}

// mutate makes one random change to a text.
func mutate(random *rand.Rand, text string, theirs []string) (kind, mutated string) {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1]
	a, b := random.IntN(len(lines)), random.IntN(len(lines))
	switch random.IntN(9) {
	case 0, 1:
		out := []byte(text)
		out[random.IntN(len(out))] ^= 1 << random.IntN(8)
		return "flip", string(out)
	case 2:
		return "delete a line", strings.Join(append(lines[:a:a], lines[a+1:]...), "")
	case 3:
		lines[a], lines[b] = lines[b], lines[a]
		return "reorder", strings.Join(lines, "")
	case 4:
		return "insert", strings.Join(append(append(lines[:a:a], lines[b]), lines[a:]...), "")
	case 5:
		return "truncate", text[:random.IntN(len(text))]
	case 6:
		at := random.IntN(len(text) - 10)
		return "delete bytes", text[:at] + text[at+1+random.IntN(9):]
	case 7:
		lines[a] = theirs[random.IntN(len(theirs))]
		return "swap a line", strings.Join(lines, "")
	}
	// Replaces the end line with the one of another export, with its key and signature.
	lines[len(lines)-1] = theirs[len(theirs)-1] + "\n"
	return "swap the end", strings.Join(lines, "")
}

// TestForgedExportRecord checks that a consistently changed record is detected, because its signature is not valid.
func TestForgedExportRecord(t *testing.T) {
	t.Parallel()
	l, h, _ := instance(t, 300)
	text, _ := export(t, h, ops.ExportQuery{Bodies: true})
	changed := strings.Replace(text, `\"tool_name\":\"read\"`, `\"tool_name\":\"kill\"`, 1)
	changed = strings.Replace(changed, `"tool_name":"read"`, `"tool_name":"kill"`, 1)
	if v := verify(t, changed); v.OK || v.FirstBreak.ID == "" || !strings.Contains(v.FirstBreak.Reason, "was changed") {
		t.Errorf("%+v", v.FirstBreak)
	}
	// The arguments are removed, with a forged note that a user erased them.
	open := text[strings.Index(text, `"arguments":"\"`):]
	open = open[:strings.Index(open, `","`)+1]
	if v := verify(t, strings.Replace(text, open, `"arguments":"\"2026-11-20T10:00:00Z\""`, 1)); v.OK {
		t.Error("a forged erasure was verified")
	}
	if f, err := h.Export(t.Context(), ops.Caller{}, ops.ExportQuery{}); err != nil || f.Type != "application/x-ndjson" {
		t.Errorf("%+v, %v", f, err)
	}
	if bytes.Contains([]byte(text), []byte("PRIVATE")) || len(l.SigningKey().String()) != 64 {
		t.Error("the export contains a private key, or the signing key has a wrong length")
	}
}
