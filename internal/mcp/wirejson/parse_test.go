package wirejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// show formats the result of a parser as one line.
func show(m Message, err error) string {
	var s []string
	add := func(name string, value []byte) {
		if value != nil {
			s = append(s, name+"="+string(value))
		}
	}
	if err != nil {
		e, ok := errors.AsType[*RPCError](err)
		if !ok {
			return fmt.Sprintf("not an *Error: %v", err)
		}
		s = append(s, fmt.Sprintf("%d %s", e.Code, e.Message))
	}
	add("id", m.ID)
	if m.Method != "" {
		add("method", []byte(m.Method))
	}
	add("params", m.Params)
	add("result", m.Result)
	if m.Error != nil {
		add("error", fmt.Appendf(nil, "%d/%s/%s", m.Error.Code, m.Error.Message, m.Error.Data))
	}
	return strings.Join(s, " ")
}

func TestParseRequest(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":[1]}}`, `id=1 method=tools/call params={"a":[1]}`},
		{" { \"id\" : \"x\\n\" , \"method\" : \"ping\" , \"jsonrpc\" : \"2.0\" }\n", `id="x\n" method=ping`},
		{`{"jsonrpc":"2.0","id":-9007199254740993,"method":"m","params":[]}`, `id=-9007199254740993 method=m params=[]`},
		{`{"jsonrpc":"2.0","id":"","method":"m"}`, `id="" method=m`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `method=notifications/initialized`},
		{`{"jsonrpc":"2.0","id":7,"result":{"x":1}}`, `id=7 result={"x":1}`},
		{`{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no","data":[1]}}`, `id=7 error=-1/no/[1]`},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}`, `id=null error=-1/no/`},
		{`{"jsonrpc":"\u0032.0","\u0069d":1,"m\u0065thod":"m"}`, `id=1 method=m`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","trace":{"id":2},"extra":1}`, `id=1 method=m`},

		{`{"jsonrpc":"2.0","id":1,"method":"m"`, `-32700 Parse error: invalid JSON at byte 36: the text ends inside an array or object`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"A":2}}`, `-32700 Parse error: invalid JSON at byte 53: duplicate member "A", which is "a" in another case`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}`, `-32700 Parse error: invalid JSON at byte 37: duplicate member "method"`},
		{`{"jsonrpc":"2.0","id":1,"METHOD":"m"}`, `-32600 Invalid request: member "method" is spelled "METHOD" id=1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","param` + "\u017f" + `":{}}`, `-32600 Invalid request: member "params" is spelled "param\u017f" id=1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","Result":{}}`, `-32600 Invalid request: member "result" is spelled "Result" id=1`},
		{`[]`, `-32600 Invalid request: a batch is not accepted here, send one message at a time`},
		{`"hello"`, `-32600 Invalid request: the message is not an object`},
		{`{}`, `-32600 Invalid request: "jsonrpc" must be "2.0"`},
		{`{"jsonrpc":2.0,"id":1,"method":"m"}`, `-32600 Invalid request: "jsonrpc" must be "2.0" id=1`},
		{`{"jsonrpc":"1.0","id":1,"method":"m"}`, `-32600 Invalid request: "jsonrpc" must be "2.0" id=1`},
		{`{"jsonrpc":"2.0","id":null,"method":"m"}`, `-32600 Invalid request: id must be a string or an integer`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"m"}`, `-32600 Invalid request: id must be a string or an integer`},
		{`{"jsonrpc":"2.0","id":1e3,"method":"m"}`, `-32600 Invalid request: id must be a string or an integer`},
		{`{"jsonrpc":"2.0","id":{},"method":"m"}`, `-32600 Invalid request: id must be a string or an integer`},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, `-32600 Invalid request: method must be a string that is not empty id=1`},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, `-32600 Invalid request: method must be a string that is not empty id=1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, `-32600 Invalid request: params must be an object or an array id=1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, `-32600 Invalid request: params must be an object or an array id=1`},
		{`{"jsonrpc":"2.0","id":1}`, `-32600 Invalid request: there is neither a method nor a result nor an error id=1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, `-32600 Invalid request: there is both a method and an answer id=1`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, `-32600 Invalid request: there is both a result and an error id=1`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"params":{}}`, `-32600 Invalid request: a response has no params id=1`},
		{`{"jsonrpc":"2.0","result":{}}`, `-32600 Invalid request: a response must have an id`},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, `-32600 Invalid request: id must be a string or an integer`},
		{`{"jsonrpc":"2.0","id":1,"error":"no"}`, `-32600 Invalid request: error must be an object id=1`},
	} {
		if got := show(ParseClientMessage([]byte(c.text), Limits{})); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	for _, c := range []struct{ text, want string }{
		{`{"result":{"content":[]},"jsonrpc":"2.0","id":1}`, `id=1 result={"content":[]}`},
		{" {\t\"jsonrpc\" : \"2.0\" , \"id\" : 1.0 , \"result\" : [ 1 ] } \r\n", `id=1.0 result=[ 1 ]`},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2,"A":"` + "\xff" + `\ud800","n":1e999}}`, `id=1 result={"a":1,"a":2,"A":"` + "\xff" + `\ud800","n":1e999}`},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, `id=1 result=null`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, `id=1 result={}`},
		{`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":5,"message":"no"}}`, `id=1 error=5/no/`},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"no"}}`, `id=null error=5/no/`},
		{`{"jsonrpc":"2.0","error":{"code":5,"message":"no"}}`, `id=null error=5/no/`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":"E5","message":7,"data":{"a":[]}}}`, `id=1 error=-32603//{"a":[]}`},
		{`{"jsonrpc":"2.0","id":1,"error":"boom"}`, `id=1 error=-32603/boom/"boom"`},
		{`{"jsonrpc":"2.0","id":null,"method":"notifications/message","params":null}`, `method=notifications/message`},
		{`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"x":1},"vendor":[{}]}`, `id="s" method=sampling/createMessage params={"x":1}`},
		{`{"jsonrpc":"2.0","id":1,"r\u0065sult":{}}`, `id=1 result={}`},
		{`{"jsonrpc":"2.0","id":1,"result":` + deep + `}`, `id=1 result=` + deep},

		{`Server is listening`, `-32700 Parse error: invalid JSON at byte 0: expected a value`},
		{``, `-32700 Parse error: invalid JSON at byte 0: the text ends where a value is expected`},
		{`{"level":"info","msg":"started"}`, `-32600 Invalid request: "jsonrpc" must be "2.0"`},
		{`[{"jsonrpc":"2.0","id":1,"result":{}}]`, `-32600 Invalid request: the message is not an object`},
		{`{"jsonrpc":"2.0","id":1,"result":{}`, `-32700 Parse error: invalid JSON at byte 35: expected a comma or the end of the object`},
		{`{"jsonrpc":"2.0","id":1,"result":{}}}`, `-32700 Parse error: invalid JSON at byte 36: there is something after the value`},
		{`{"jsonrpc":"2.0","id":1,"result":[1}}`, `-32700 Parse error: invalid JSON at byte 35: expected a comma or the end of the array`},
		{`{"jsonrpc":"2.0","id":1,"result":[` + deep + `]}`, `-32700 Parse error: JSON over the limit at byte 1033: arrays and objects are nested deeper than 1000 levels`},
		{`{"jsonrpc" "2.0"}`, `-32700 Parse error: invalid JSON at byte 11: expected a colon after the member name`},
		{`{"jsonrpc":"2.0",}`, `-32700 Parse error: invalid JSON at byte 17: expected a member name in double quotes`},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1},"result":{"a":2}}`, `-32600 Invalid request: duplicate member "result"`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"\u0069d":2}`, `-32600 Invalid request: duplicate member "id"`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"ID":2}`, `-32600 Invalid request: member "id" is spelled "ID"`},
		{`{"jsonrpc":"2.0","id":1,"result\u0000":{}}`, `-32600 Invalid request: a member name contains NUL`},
		{`{"jsonrpc":"2.0","id":true,"result":{}}`, `-32600 Invalid request: id must be a string or a number`},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, `-32600 Invalid request: id must be a string or a number`},
		{`{"jsonrpc":"2.0","result":{}}`, `-32600 Invalid request: a response must have an id`},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, `-32600 Invalid request: method must be a string that is not empty`},
	} {
		if got := show(ParseServerMessage([]byte(c.text))); got != c.want {
			t.Errorf("%.200s\ngot  %.200s\nwant %.200s", c.text, got, c.want)
		}
	}
}

func TestMessageKinds(t *testing.T) {
	for _, c := range []struct {
		text  string
		kinds [3]bool
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"m"}`, [3]bool{true, false, false}},
		{`{"jsonrpc":"2.0","method":"m"}`, [3]bool{false, true, false}},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, [3]bool{false, false, true}},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`, [3]bool{false, false, true}},
	} {
		for _, m := range []Message{must(ParseClientMessage([]byte(c.text), Limits{})), must(ParseServerMessage([]byte(c.text)))} {
			if got := [3]bool{m.IsRequest(), m.IsNotification(), m.IsResponse()}; got != c.kinds {
				t.Errorf("%s: %v, want %v", c.text, got, c.kinds)
			}
		}
	}
}

func must(m Message, err error) Message {
	if err != nil {
		panic(err)
	}
	return m
}

func TestSplitBatch(t *testing.T) {
	batch, err := SplitBatch([]byte(` [ {"a":[1,2]} , 5 ] `), Limits{})
	if err != nil || len(batch) != 2 || string(batch[0]) != `{"a":[1,2]}` || string(batch[1]) != "5" {
		t.Errorf("got %q, %v", batch, err)
	}
	for text, want := range map[string]string{
		`{"a":1}`: "",
		`[]`:      "-32600 Invalid request: the batch is empty",
		`[1,]`:    "-32700 Parse error: invalid JSON at byte 3: expected a value",
		"[" + strings.Repeat("{},", maxBatch) + "{}]": "-32600 Invalid request: a batch holds at most 100 messages",
	} {
		batch, err := SplitBatch([]byte(text), Limits{})
		if got := show(Message{}, err); batch != nil || got != want {
			t.Errorf("%.20s: %q %s, want %s", text, batch, got, want)
		}
	}
}

func TestAppend(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{string(AppendRequest([]byte("x"), 1<<64-1, "tools/list", nil)), `x{"jsonrpc":"2.0","id":18446744073709551615,"method":"tools/list"}`},
		{string(AppendRequest(nil, 0, `a"b`, json.RawMessage(`{"x": 1}`))), `{"jsonrpc":"2.0","id":0,"method":"a\"b","params":{"x": 1}}`},
		{string(AppendNotification(nil, "n", nil)), `{"jsonrpc":"2.0","method":"n"}`},
		{string(AppendNotification(nil, "n", json.RawMessage(`{}`))), `{"jsonrpc":"2.0","method":"n","params":{}}`},
		{string(AppendResult(nil, json.RawMessage(`"a"`), json.RawMessage(`{"b":9007199254740993}`))), `{"jsonrpc":"2.0","id":"a","result":{"b":9007199254740993}}`},
		{string(AppendResult(nil, json.RawMessage(`1`), nil)), `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{string(AppendError(nil, nil, &RPCError{Code: CodeParse, Message: "a\n\x01\"é\xff\u2028<"})),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a\n\u0001\"é` + "\ufffd\u2028" + `<"}}`},
		{string(AppendError(nil, json.RawMessage("3"), &RPCError{Code: 1, Message: "m", Data: json.RawMessage("[]")})),
			`{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"m","data":[]}}`},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

// TestRoundTrip checks that an appended message is parsed as the same message, by this package and by the official SDK.
func TestRoundTrip(t *testing.T) {
	for _, text := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f", "é€😀\u2028", strings.Repeat("long ", 100)} {
		if text != "" {
			agree(t, AppendRequest(nil, 5, text, json.RawMessage(`{}`)), Message{ID: []byte("5"), Method: text, Params: []byte(`{}`)})
			agree(t, AppendNotification(nil, text, nil), Message{Method: text})
		}
		e := &RPCError{Code: -1, Message: text, Data: json.RawMessage(`{"a":1}`)}
		agree(t, AppendError(nil, json.RawMessage(`"i"`), e), Message{ID: []byte(`"i"`), Error: e})
	}
	agree(t, AppendResult(nil, json.RawMessage(`"i"`), json.RawMessage(`{}`)), Message{ID: []byte(`"i"`), Result: []byte(`{}`)})
}

func agree(t *testing.T, data []byte, want Message) {
	t.Helper()
	for _, m := range []Message{must(ParseClientMessage(data, Limits{})), must(ParseServerMessage(data))} {
		if show(m, nil) != show(want, nil) {
			t.Errorf("%s\ngot  %s\nwant %s", data, show(m, nil), show(want, nil))
		}
	}
	oracle(t, data)
}

// oracle checks that the SDK reads an accepted message as ParseClientMessage does.
func oracle(t *testing.T, data []byte) {
	t.Helper()
	m, err := ParseClientMessage(data, Limits{})
	if err != nil {
		return
	}
	theirs, err := sdk.DecodeMessage(data)
	if err != nil {
		if m.IsResponse() || !json.Valid(data) { // the SDK accepts only response ids that it issued
			return
		}
		t.Fatalf("%q is accepted, but the SDK rejects it: %v", data, err)
	}
	switch theirs := theirs.(type) {
	case *sdk.Request:
		if theirs.Method != m.Method || theirs.ID.IsValid() != m.IsRequest() || !sameJSON(theirs.Params, m.Params) {
			t.Fatalf("%q: the SDK returns %+v, we return %s", data, theirs, show(m, nil))
		}
	case *sdk.Response:
		if !m.IsResponse() || (theirs.Error != nil) != (m.Error != nil) || !sameJSON(theirs.Result, m.Result) {
			t.Fatalf("%q: the SDK returns %+v, we return %s", data, theirs, show(m, nil))
		}
	}
}

func sameJSON(a, b []byte) bool {
	return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
}

// TestMutations checks that any changed message is rejected, or means the same to the SDK, and that its fields equal
// the bytes.
func TestMutations(t *testing.T) {
	seed := uint64(20260728)
	rng := rand.New(rand.NewPCG(seed, seed))
	originals := [][]byte{call(), AppendResult(nil, []byte("7"), []byte(`{"content":[{"type":"text","text":"a\"b"}]}`)),
		AppendError(nil, []byte(`"x"`), &RPCError{Code: 5, Message: "no", Data: []byte(`[1,{"a":null}]`)})}
	pieces := []string{`"`, `\`, `{`, `}`, `[`, `]`, `,`, `:`, "\x00", "\xff", "\n", " ", `"id":2,`, `"ID":2,`, `"method":"x",`, `\u0000`, `\ud800`, "\u017f", "\u212a", "1e999", "null", "\ufeff"}
	for n := range 4000 {
		data := bytes.Clone(originals[n%len(originals)])
		for range 1 + rng.IntN(3) {
			at := rng.IntN(len(data))
			switch rng.IntN(4) {
			case 0:
				data[at] = byte(rng.Uint32())
			case 1:
				data = append(data[:at], data[at+1:]...)
			case 2:
				data = append(data[:at:at], append([]byte(pieces[rng.IntN(len(pieces))]), data[at:]...)...)
			case 3:
				to := at + rng.IntN(len(data)-at)
				data = append(data, data[at:to]...)
			}
		}
		inspect(t, data)
	}
}

// inspect checks properties that must hold for any bytes.
func inspect(t *testing.T, data []byte) {
	t.Helper()
	oracle(t, data)
	strict, strictErr := ParseClientMessage(data, Limits{})
	m, err := ParseServerMessage(data)
	if err == nil && !json.Valid(data) {
		t.Fatalf("%q is accepted by ParseServerMessage, but is not JSON", data)
	}
	if err != nil && strictErr == nil {
		t.Fatalf("%q is accepted strictly, but not leniently: %v", data, err)
	}
	if strictErr == nil && show(m, nil) != show(strict, nil) {
		t.Fatalf("%q: %s, leniently %s", data, show(strict, nil), show(m, nil))
	}
	for _, raw := range []json.RawMessage{m.ID, m.Params, m.Result, strict.ID, strict.Params, strict.Result} {
		if raw != nil && (!json.Valid(raw) || !bytes.Contains(data, raw)) {
			t.Fatalf("%q: %q is not part of the message", data, raw)
		}
	}
}

// messageCorpus returns the malformed-json corpus, by id.
func messageCorpus(t testing.TB) map[string][]byte {
	t.Helper()
	shared := os.Getenv("MCPPROXY_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	data, err := os.ReadFile(filepath.Join(shared, "security-corpora/malformed-json/corpus.jsonl"))
	if err != nil {
		t.Skipf("the shared corpora are missing, set MCPPROXY_SHARED: %v", err)
	}
	texts := map[string][]byte{}
	for line := range bytes.Lines(data) {
		var r struct {
			ID  string `json:"id"`
			B64 []byte `json:"b64"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		texts[r.ID] = r.B64
	}
	return texts
}

// TestMessageCorpus tests each text of the corpus as a message, as params and as a result.
func TestMessageCorpus(t *testing.T) {
	for id, text := range messageCorpus(t) {
		inspect(t, text)
		asParams := AppendRequest(nil, 1, "m", text)
		inspect(t, asParams)
		asResult := AppendResult(nil, []byte("1"), text)
		inspect(t, asResult)
		if strings.HasPrefix(id, "json-n_") {
			if _, err := ParseClientMessage(asParams, Limits{}); err == nil {
				t.Errorf("%s is accepted as params: %q", id, asParams)
			}
			// Texts such as n_structure_object_with_trailing_garbage change the envelope, which inspect has checked. A
			// text inside the result must be rejected.
			if m, err := ParseServerMessage(asResult); err == nil && !json.Valid(m.Result) {
				t.Errorf("%s is accepted as a result: %q", id, asResult)
			}
		}
		if strings.HasPrefix(id, "json-y_") {
			if m, err := ParseServerMessage(asResult); err != nil || !sameJSON(m.Result, text) {
				t.Errorf("%s: got %s", id, show(m, err))
			}
		}
	}
}

// FuzzParseRequest checks that params cannot escape from their envelope.
func FuzzParseRequest(f *testing.F) {
	for _, text := range messageCorpus(f) {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	f.Add([]byte(`{},"id":2`))
	f.Fuzz(func(t *testing.T, params []byte) {
		data := AppendRequest(nil, 1, "m", params)
		inspect(t, data)
		m, err := ParseClientMessage(data, Limits{})
		if err == nil && json.Valid(params) != sameJSON(m.Params, params) {
			t.Fatalf("%q: got %s", data, show(m, err))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range messageCorpus(f) {
		if len(text) < 1000 {
			f.Add(AppendResult(nil, []byte("1"), text))
		}
	}
	f.Add(call())
	f.Fuzz(func(t *testing.T, data []byte) { inspect(t, data) })
}

// call returns a tools/call of 1 KB.
func call() []byte {
	return AppendRequest(nil, 42, "tools/call", []byte(`{"name":"call_tool_write","arguments":{`+
		`"name":"github:create_issue","intent_reason":"The user asked to report the crash that was seen on Monday",`+
		`"args":{"owner":"example","repo":"widgets","title":"Crash when the list is empty","body":"`+
		strings.Repeat(`Steps to reproduce:\n1. Open the list.\n2. Remove every item, then press \"Undo\".\n`, 6)+
		`","labels":["bug","crash","needs triage"],"assignees":["octocat"],"milestone":7,"draft":false}},`+
		`"_meta":{"progressToken":17,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`))
}

// reply returns a result of about n bytes whose text contains JSON.
func reply(n int) []byte {
	const row = `{\"id\": 12345, \"name\": \"The quick brown fox\", \"tags\": [\"a\", \"b\"]},\n`
	return []byte(`{"result":{"content":[{"type":"text","text":"` + strings.Repeat(row, n/len(row)+1) + `"}]},"jsonrpc":"2.0","id":42}`)
}

// TestParseAllocations checks that only the method of a request is copied.
func TestParseAllocations(t *testing.T) {
	request, answer := call(), reply(1000)
	if n := testing.AllocsPerRun(100, func() {
		must(ParseClientMessage(request, Limits{}))
		must(ParseServerMessage(answer))
	}); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}

func BenchmarkParseRequest(b *testing.B) {
	data := call()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		must(ParseClientMessage(data, Limits{}))
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"1KB", reply(1000)},
		{"json in text 10MB", reply(10_000_000)},
		{"prose 10MB", AppendResult(nil, []byte("1"), []byte(`{"content":[{"type":"text","text":"`+strings.Repeat(`The quick brown fox jumps over the lazy dog.\n`, 220_000)+`"}]}`))},
		{"base64 10MB", AppendResult(nil, []byte("1"), []byte(`{"content":[{"type":"image","data":"`+strings.Repeat("iVBORw0KGgoAAAAN", 625_000)+`"}]}`))},
		{"structured 10MB", AppendResult(nil, []byte("1"), []byte(`{"structuredContent":{"rows":[`+strings.Repeat(`{"id":12345,"name":"The quick brown fox","tags":["a","b"],"ok":true},`, 145_000)+`0]}}`))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.data)))
			b.ReportAllocs()
			for b.Loop() {
				must(ParseServerMessage(c.data))
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	result := json.RawMessage(`{"content":[]}`)
	id := json.RawMessage("1")
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		AppendRequest(buf, 1, "tools/call", result)
		AppendResult(buf, id, result)
	}
}

func TestBrokenAnswer(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":12,"result":{"a":"`:                       "12", // truncated
		`{"jsonrpc":"2.0","id": 3 ,"error":` + deep:                      "3",
		`{"jsonrpc":"2.0","id":"x","result":{"a":1,}}`:                   `"x"`,
		`{"jsonrpc":"2.0","id":4,"result":{},"error":{}}`:                "4",
		`{"jsonrpc":"2.0","id":4,"result":{} "error":{}}`:                "4",
		`{"jsonrpc":"2.0","id":5,"method":"ping","result":{"a":"`:        "", // a request
		`{"jsonrpc":"2.0","method":"x","params":{"id":5,"result":{"a":"`: "",
		`{"jsonrpc":"2.0","id":5,"params":{"a":"`:                        "", // its method may follow
		`{"result":{"id":6,"jsonrpc":"2.0","result":"`:                   "", // not its own id
		`{"level":30,"id":7,"error":"it`:                                 "", // a log line
		`{"jsonrpc":"2.0","id":7,"id":8,"result":"`:                      "",
		`{"jsonrpc":"2.0","id":1`:                                        "",
		`{"jsonrpc":"2.0","id":1}`:                                       "",
		`[{"jsonrpc":"2.0","id":1,"result":"`:                            "",
		deep:                                                             "",
		"":                                                               "",
	} {
		if got := string(MalformedResponseID([]byte(text))); got != want {
			t.Errorf("%.60s: got %q", text, got)
		}
	}
}
