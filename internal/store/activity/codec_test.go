package activity

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

func drawJSON(t *rapid.T, name string) json.RawMessage {
	switch rapid.IntRange(0, 3).Draw(t, name+" kind") {
	case 0:
		return nil
	case 1: // invalid JSON, and text that is part of the format
		return rapid.SampledFrom([]json.RawMessage{
			[]byte(`{"a":tru}`), []byte(`}`), []byte(`,"response":`), []byte(`"raw":[1,2]`), []byte("\x00\xff"),
		}).Draw(t, name)
	case 2:
		return []byte("{\n  \"a\" : [1,\r\n 12345678901234567890]\n}")
	}
	b, err := json.Marshal(rapid.String().Draw(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// toStoredJSON returns raw JSON as it is stored: without line ends, and as a string if it is invalid.
func toStoredJSON(raw json.RawMessage) json.RawMessage {
	return toValidJSON(wirejson.AppendAsOneLine(nil, raw))
}

func drawRecord(t *rapid.T) Record {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", `"`, `","kind":"end"`, "\x00\n\u2028", "\xff\xfe"}))
	r := Record{
		ID: "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", Type: Type(text.Draw(t, "type")), Status: Pending,
		ServerName: text.Draw(t, "server"), ToolName: text.Draw(t, "tool"),
		Arguments: drawJSON(t, "arguments"), Response: drawJSON(t, "response"),
		ResponseTruncated: rapid.Bool().Draw(t, "truncated"), ErrorMessage: text.Draw(t, "error"),
		Timestamp:  time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "time")).UTC(),
		DurationMS: rapid.Int64().Draw(t, "duration"), OwnUS: rapid.Int64().Draw(t, "own"), RequestBytes: rapid.Int64().Draw(t, "request bytes"),
		ResponseBytes: rapid.Int64().Draw(t, "response bytes"), SessionID: text.Draw(t, "session"),
		RequestID: text.Draw(t, "request"), ParentID: text.Draw(t, "parent"), Source: SourceMCP,
		Actor: text.Draw(t, "actor"), ClientName: text.Draw(t, "client"), ClientVersion: text.Draw(t, "version"),
	}
	r.Metadata = Metadata{
		ToolVariant: text.Draw(t, "variant"), Warnings: rapid.SliceOfN(text, 0, 3).Draw(t, "warnings"),
		ErrorCode: text.Draw(t, "code"), Action: text.Draw(t, "action"), Detail: text.Draw(t, "detail"),
	}
	if rapid.Bool().Draw(t, "search") {
		r.Metadata.Search = &Search{text.Draw(t, "query"), rapid.IntRange(0, 100).Draw(t, "rank")}
	}
	if rapid.Bool().Draw(t, "intent") {
		r.Metadata.Intent = &Intent{text.Draw(t, "operation"), text.Draw(t, "sensitivity"), text.Draw(t, "reason"), drawDeclared(t)}
	}
	if rapid.Bool().Draw(t, "decision") {
		r.Metadata.Decision = drawDecision(t, text)
	}
	return r
}

// drawDeclared draws a declared intent in the form that maskAndLimitRecord returns, which is JSON.
func drawDeclared(t *rapid.T) json.RawMessage {
	return rapid.SampledFrom([]json.RawMessage{nil, []byte(`{"intent":{"operation_type":"none"}}`), []byte(`"{\"intent\":"`)}).Draw(t, "declared")
}

func drawDecision(t *rapid.T, text *rapid.Generator[string]) *Decision {
	fact := func(name string) *tool.HintFact {
		if rapid.Bool().Draw(t, name) {
			return nil
		}
		return &tool.HintFact{Value: rapid.Bool().Draw(t, name+" value"), From: tool.HintSource(rapid.SampledFrom(tool.HintSource("").Words()).Draw(t, name+" from"))}
	}
	d := &Decision{
		Outcome: Verdict(rapid.SampledFrom(Verdict("").Words()).Draw(t, "outcome")), Check: text.Draw(t, "check"),
		Status: text.Draw(t, "tool status"), Alias: text.Draw(t, "alias"), ConfigRevision: "0123456789ab",
		Further: rapid.SliceOfN(text, 0, 2).Draw(t, "further"),
		DecisionFacts: tool.DecisionFacts{CallWith: text.Draw(t, "call with"), Fingerprint: text.Draw(t, "fingerprint"), ApprovedBy: text.Draw(t, "approved by"),
			Inferred: text.Draw(t, "inferred"), Unsure: rapid.Bool().Draw(t, "unsure")},
	}
	if rapid.Bool().Draw(t, "how") { // otherwise an earlier version wrote the record
		d.Called, d.Declared = rapid.SampledFrom([]CallStyle{CalledInLane, CalledByName}).Draw(t, "called"), rapid.Bool().Draw(t, "declared")
		d.Arguments = rapid.SampledFrom([]SchemaFit{"", ArgumentsFit, ArgumentsUnfit}).Draw(t, "fit")
	}
	if rapid.Bool().Draw(t, "overridden") {
		d.Overridden = &tool.JudgedHints{ReadOnly: fact("read only"), Destructive: fact("destructive"), Idempotent: fact("idempotent"), OpenWorld: fact("open world")}
	}
	if rapid.Bool().Draw(t, "hints") {
		d.Hints = &tool.JudgedHints{ReadOnly: fact("read only"), Destructive: fact("destructive"), Idempotent: fact("idempotent"), OpenWorld: fact("open world")}
	}
	if ms := rapid.Int64Range(0, 4e12).Draw(t, "approved at"); ms > 0 {
		at := time.UnixMilli(ms).UTC()
		d.ApprovedAt = &at
	}
	if rapid.Bool().Draw(t, "prepared") {
		d.DecisionFacts = d.WithEncodedBytes()
	}
	return d
}

// toUTF8Record returns r with the changes that JSON encoding makes, such as replaced invalid UTF-8.
func toUTF8Record(t *rapid.T, r Record) Record {
	plain := r
	plain.Arguments, plain.Response = nil, nil
	b, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	var out Record
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	out.Arguments, out.Response = toStoredJSON(r.Arguments), toStoredJSON(r.Response)
	return out
}

var sameRecord = cmp.Options{
	cmpopts.IgnoreUnexported(tool.DecisionFacts{}),
	cmp.Comparer(func(a, b []string) bool {
		return strings.Join(a, "\x01") == strings.Join(b, "\x01") && len(a) == len(b)
	}),
}

// toStoredPayload returns a payload, with a prefix, in its stored form.
func toStoredPayload(prefix []byte, b encodedBody) []byte {
	return b.toStoredLine(append(prefix, b.data[:b.chainedLen]...))
}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		data := appendPayloadPrefix(nil, KindWhole, r.ID, 7, r.Timestamp, 0)
		data = toStoredPayload(data, encodeBodyInNewBuffer(&payload{Record: r, kind: KindWhole}))
		if bytes.ContainsAny(data, "\n\r") {
			t.Fatalf("the entry has more than one line: %q", data)
		}
		got, err := DecodeRecord(data, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if d := cmp.Diff(toUTF8Record(t, r), got, sameRecord); d != "" {
			t.Fatalf("%s\n%s", d, data)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Fatalf("DecodeForDisplay failed: %v", err)
		}
	})
}

func TestOutcomesComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		r.Response, r.ResponseTruncated = nil, false
		entry := appendPayloadPrefix(nil, KindBegin, r.ID, 7, r.Timestamp, 0)
		entry = toStoredPayload(entry, encodeBodyInNewBuffer(&payload{Record: r, kind: KindBegin}))
		text := rapid.String()
		o := Outcome{
			Status: Success, Response: drawJSON(t, "response"), ResponseBytes: rapid.Int64().Draw(t, "bytes"),
			ErrorMessage: text.Draw(t, "message"), ErrorCode: text.Draw(t, "code"),
			Duration: time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "ms")) * time.Millisecond,
			Own:      time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "own")) * time.Microsecond,
			Check:    rapid.SampledFrom([]string{"", "callable"}).Draw(t, "refused by"),
			Warnings: rapid.SliceOfN(text, 0, 2).Draw(t, "more warnings"),
		}
		truncated := rapid.Bool().Draw(t, "truncated")
		outcome := appendPayloadPrefix(nil, KindEnd, r.ID, 8, time.Time{}, 12)
		p := newOutcomePayload(7, &o)
		p.ResponseTruncated = truncated
		outcome = toStoredPayload(outcome, encodeBodyInNewBuffer(&p))
		want := withOutcome(r, o, o.Response, truncated)
		got, err := DecodeRecord(entry, outcome)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(toUTF8Record(t, want), got, sameRecord); d != "" {
			t.Fatalf("%s\n%s\n%s", d, entry, outcome)
		}
		if _, err := DecodeRecord(nil, outcome); err != nil {
			t.Fatalf("decoding an outcome without its first entry: %v", err)
		}
	})
}

func withOutcome(r Record, o Outcome, kept []byte, cut bool) Record {
	r.Status = o.Status
	r.Response, r.ResponseTruncated, r.ResponseBytes = kept, cut, o.ResponseBytes
	r.DurationMS, r.OwnUS = o.Duration.Milliseconds(), o.Own.Microseconds()
	if d := r.Metadata.Decision; d != nil && o.Check != "" {
		refused := *d
		refused.Outcome, refused.Check = Refused, o.Check
		r.Metadata.Decision = &refused
	}
	if o.ErrorMessage != "" {
		r.ErrorMessage = o.ErrorMessage
	}
	if o.ErrorCode != "" {
		r.Metadata.ErrorCode = o.ErrorCode
	}
	r.Metadata.Warnings = append(slices.Clip(r.Metadata.Warnings), o.Warnings...)
	return r
}

// TestEntriesAreTwoObjects checks the format: an entry consists of two objects, and the chained text contains
// commitments to the erasable values.
func TestEntriesAreTwoObjects(t *testing.T) {
	r := Record{Type: ToolCall, ServerName: "a\tb", Arguments: []byte("{\"x\":\t[1]}"), Response: []byte(`{"not JSON`), ErrorMessage: "é\n",
		Metadata: Metadata{Intent: &Intent{OperationType: "read", Reason: "why", Declared: []byte(`{}`)}, Search: &Search{Query: "q", Rank: 2}, Warnings: []string{"one", "two"}, Detail: "seen"}}
	data := appendPayloadPrefix(nil, KindWhole, "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", 7, time.UnixMilli(5).UTC(), 0)
	data = toStoredPayload(data, encodeBodyInNewBuffer(&payload{Record: r, kind: KindWhole}))
	sealed, open, _ := bytes.Cut(data, []byte{'\t'})
	if !json.Valid(sealed) {
		t.Fatalf("%s", sealed)
	}
	want := `{"id":"01JG2K4WZ3N8Q5R7T9V1X2Y3Z4","seq":7,"timestamp":"1970-01-01T00:00:00.005Z","kind":"record","type":"tool_call","server_name":"a\tb",` +
		`"metadata":{"intent":{"operation_type":"read"},"search":{"rank":2},"detail":"seen"}}`
	if string(sealed) != want {
		t.Errorf("got  %s\nwant %s", sealed, want)
	}
	inner := regexp.MustCompile(`"([a-z_]+)":\[(\d+),("[A-Za-z0-9_-]{22} *",(.*?))\](?:,"|}$)`)
	var commits, fields []string
	for at := 0; at < len(open)-1; {
		found := inner.FindSubmatchIndex(open[at:])
		if found == nil {
			t.Fatalf("%s", open[at:])
		}
		m := [5][]byte{}
		for i := range m {
			m[i] = open[at+found[2*i] : at+found[2*i+1]]
		}
		at += found[1] - 1
		sum := sha256.Sum256(m[3])
		commits = append(commits, fmt.Sprintf(`"%s":"%x"`, m[1], sum))
		fields = append(fields, string(m[1])+string(m[4]))
		if string(m[2]) != strconv.Itoa(len(m[3])) || len(m[3]) < minContentLen {
			t.Errorf("%s: got %d bytes", m[0], len(m[3]))
		}
	}
	if got := strings.Join(fields, " "); got != "arguments{\"x\":\t[1]} response{\"not JSON error_message\"é\\n\" reason\"why\" declared{} query\"q\" warnings[\"one\",\"two\"]" {
		t.Error(got)
	}
	want = strings.TrimSuffix(want, "}") + `,"commit":{` + strings.Join(commits, ",") + "}}"
	if chained, ok := appendSealedWithCommitments(nil, sealed, open); !ok || string(chained) != want {
		t.Errorf("got %s, want %s", chained, want)
	}
	b := encodeBodyInNewBuffer(&payload{Record: r, kind: KindWhole})
	if again := parseEncodedBody(b.data); again.chainedLen != b.chainedLen || again.commitmentsLen != b.commitmentsLen {
		t.Errorf("got %+v, want %+v", again, b)
	}
}

// TestEveryByteIsChained checks that a change of any byte of a payload is detected, in the file and in the database,
// also in a payload with erased fields. The time of an erasure is an exception: a separate record proves it.
func TestEveryByteIsChained(t *testing.T) {
	r := Record{Type: ToolCall, Arguments: []byte(`{}`), Response: []byte(`"` + strings.Repeat("long ", 20) + `"`), ErrorMessage: "no", Metadata: Metadata{Warnings: []string{"one"}}}
	whole := toStoredPayload(appendPayloadPrefix(nil, KindWhole, "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", 7, time.UnixMilli(5).UTC(), 0), encodeBodyInNewBuffer(&payload{Record: r, kind: KindWhole}))
	prev := Hash{1, 2, 3}
	h, ok := hashPayload(prev, whole)
	if !ok {
		t.Fatalf("%s", whole)
	}
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	inFile, had := erasePayloadFields(whole, []ErasableField{FieldArguments, FieldResponse}, at, true)
	inStore, had2 := erasePayloadFields(inFile, []ErasableField{FieldArguments, FieldResponse, FieldWarnings}, at, false)
	if !had || !had2 || len(inFile) != len(whole) || bytes.Contains(inStore, []byte("long")) {
		t.Fatalf("%s\n%s", inFile, inStore)
	}
	for _, data := range [][]byte{whole, inFile, inStore} {
		if !isNextInChain(prev, data, h) {
			t.Fatalf("the hash does not match for %s", data)
		}
		for i := range data {
			for bit := range 8 {
				changed := bytes.Clone(data)
				changed[i] ^= 1 << bit
				c := erasureCheck{recorded: map[erasureKey]bool{}, claimed: map[erasureKey]int64{}}
				for _, f := range erasableFields {
					c.recorded[erasureKey{"01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", f, at.Unix()}] = true
				}
				if isNextInChain(prev, changed, h) && c.collectErasures(7, changed) && c.firstUnrecordedErasure() == nil {
					t.Fatalf("the change to %s was not detected; original: %s", changed, data)
				}
			}
		}
	}
	for _, data := range []string{string(whole) + "\t", string(whole) + " ", strings.Replace(string(whole), "\t{", "\t{{", 1), string(whole[:bytes.IndexByte(whole, '\t')+1])} {
		if isNextInChain(prev, []byte(data), h) {
			t.Errorf("%s has the same hash as %s", data, whole)
		}
	}
}

// TestTheChainCanBeCheckedWithAShell runs the shell commands that the documentation describes.
func TestTheChainCanBeCheckedWithAShell(t *testing.T) {
	prev := Hash{1, 2, 3}
	payload := `{"id":1}`
	line := append(make([]byte, hexLen), " "+payload...)
	h := sealLine(line, prev)
	sum := sha256.Sum256([]byte(hex.EncodeToString(prev[:]) + " " + payload))
	if is, ok := hashPayload(prev, []byte(payload)); h != sum || string(line) != hex.EncodeToString(sum[:])+" "+payload || !ok || is != h {
		t.Fatalf("line %s does not have the hash %x", line, sum)
	}
}

func FuzzDecode(f *testing.F) {
	r := Record{Type: ToolCall, Arguments: []byte(`{}`), Response: []byte(`1`)}
	data := appendPayloadPrefix(nil, KindWhole, "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", 7, time.UnixMilli(5).UTC(), 0)
	f.Add(toStoredPayload(data, encodeBodyInNewBuffer(&payload{Record: r, kind: KindWhole})))
	f.Add([]byte(`{"kind":"end","raw":[99999999999999999999,1]}`))
	f.Add([]byte(`"kind":"end","raw":[1,0]"arguments":}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := json.Marshal(DecodeForDisplay(data, data)); err != nil {
			t.Fatalf("DecodeForDisplay failed: %v", err)
		}
		if r, err := DecodeRecord(data, nil); err == nil {
			if _, err := json.Marshal(r); err != nil {
				t.Fatalf("DecodeForDisplay failed: %v", err)
			}
		}
		decodeSpoolEntry(Hash{}, data) //nolint:errcheck // it must not panic
		parseSeqAndTime(data)
		splitSpoolLine(data)
		is, _ := hashPayload(Hash{}, data)
		isNextInChain(Hash{}, data, is)
		for _, in := range []bool{false, true} {
			sealed, _, _ := splitPayload(data)
			erased, had := erasePayloadFields(data, []ErasableField{FieldArguments, FieldResponse}, time.Unix(0, 0), in)
			if again, _, _ := splitPayload(erased); string(again) != string(sealed) || had && in && len(erased) != len(data) {
				t.Fatalf("erasing the fields of %q gave %q", data, erased)
			}
		}
		parseSegmentHeader(data)
	})
}

func FuzzCloseJSON(f *testing.F) {
	f.Add(`{"a":[1,2.5e3,true,null,"x\u00e9\n\"",{"b":{}}],"c":"d"}`, uint(7))
	f.Add(`[[["é😀"]]]`, uint(6))
	f.Fuzz(func(t *testing.T, text string, n uint) {
		text = strings.TrimSpace(text)
		n %= uint(len(text) + 1)
		cut := completeTruncatedJSON([]byte(text)[:n])
		if json.Valid([]byte(text)) && n > 0 && !json.Valid(cut) {
			t.Fatalf("%q cut to %d bytes became %q", text, n, cut)
		}
	})
}

func TestCloseJSONAtEveryByte(t *testing.T) {
	text := `{"a":[1,-2.5e3,true,null,"x\u00e9\n\"é😀",{"b":{}, "":[]} ],"long":"d","e":false} `
	for n := 1; n <= len(text); n++ {
		if cut := completeTruncatedJSON([]byte(text[:n])); !json.Valid(cut) || !utf8.Valid(cut) {
			t.Errorf("%q became %q", text[:n], cut)
		}
	}
}

func TestKeptResponse(t *testing.T) {
	secret := "ghp_" + strings.Repeat("aB3dE6", 6)
	tests := []struct {
		name      string
		raw       string
		max       int
		truncated bool
	}{
		{"fits", `{"a":1}`, 7, false},
		{"one too many", `{"a":12}`, 7, true},
		{"a secret inside", `{"token":"` + secret + `"}`, 1000, false},
		{"a secret on the cut", `{"text":"` + strings.Repeat("x", 80) + " " + secret + `"}`, 100, true},
		{"a secret named long before the cut", `{"password":"` + strings.Repeat("hunter2 ", 2000) + `"}`, 100, true},
		{"a character on the cut", `{"text":"` + strings.Repeat("é", 100) + `"}`, 100, true},
		{"no JSON", strings.Repeat("<html>", 1000), 100, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kept, truncated := MaskAndCutJSON([]byte(tt.raw), tt.max)
			if truncated != tt.truncated || !json.Valid(kept) {
				t.Fatalf("kept %q, truncated %v", kept, truncated)
			}
			if truncated {
				var text string
				if err := json.Unmarshal(kept, &text); err != nil || len(text) > tt.max || !utf8.ValidString(text) {
					t.Fatalf("kept %q (%v)", kept, err)
				}
			}
			if bytes.Contains(kept, []byte(secret[:20])) || strings.Contains(string(kept), "hunter2") {
				t.Fatalf("the kept text contains a secret: %s", kept)
			}
		})
	}
}
