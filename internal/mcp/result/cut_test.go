package result

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mcpproxy/internal/testutil/volume"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	volume.ConfigureRapid()
	os.Exit(m.Run())
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func textResult(text string) string {
	return `{"content":[{"type":"text","text":` + quote(text) + `}]}`
}

func records(n int) string {
	var b strings.Builder
	b.WriteString(`{"total":` + fmt.Sprint(n) + `,"items":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"Name \"%d\" é","tags":["a","b"]}`, i, i)
	}
	return b.String() + `],"next":"abc"}`
}

// cutCases are results that each show one case when cut to 1,300 bytes.
var cutCases = []struct{ name, raw string }{
	{"text", textResult(strings.Repeat("Zeile mit Ümlaut und \"Anführung\"\n", 200))},
	{"json", textResult(records(200))},
	{"json_array", textResult(strings.TrimSuffix(strings.SplitN(records(200), `"items":`, 2)[1], `,"next":"abc"}`))},
	{"json_two_arrays", textResult(`{"large":[` + strings.Repeat(`{"a":1},`, 500) + `{}],"small":[1,2,3],"count":501}`)},
	{"json_nested", textResult(`{"data":{"repository":{"name":"x","issues":{"edges":[` + strings.Repeat(`{"node":{"id":7}},`, 300) + `{}]}}}}`)},
	{"json_long_string", textResult(`{"id":1,"log":` + quote(strings.Repeat("line of a log\n", 300)) + `,"status":"done"}`)},
	{"json_large_elements", textResult(`[{"name":"first","rows":[` + strings.Repeat("12345,", 600) + `0]},{"name":"second"}]`)},
	{"json_many_members", textResult(`{` + strings.Repeat(`"member":"value",`, 300) + `"last":1}`)},
	{"looks_like_json", textResult("[2026-11-20] INFO started {pid 5}\n" + strings.Repeat("[2026-11-20] DEBUG tick\n", 100))},
	{"image", `{"content":[{"type":"text","text":"Here it is:"},{"type":"image","data":"` + strings.Repeat("A", 4000) + `","mimeType":"image/png"},{"type":"image","data":"QUJD","mimeType":"image/gif"}]}`},
	{"resource", `{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":` + quote(strings.Repeat("text ", 500)) + `}},{"type":"resource","resource":{"uri":"file:///b","blob":"` + strings.Repeat("B", 2000) + `"}},{"type":"resource_link","uri":"file:///c","name":"c"}]}`},
	{"several_texts", `{"content":[{"type":"text","text":"short"},{"type":"text","text":` + quote(strings.Repeat("one ", 1000)) + `},{"type":"text","text":` + quote(strings.Repeat("two ", 1000)) + `,"annotations":{"priority":1}}]}`},
	{"many_blocks", `{"content":[` + strings.Repeat(`{"type":"text","text":"block"},`, 400) + `{"type":"text","text":"last"}]}`},
	{"structured", `{"content":[{"type":"text","text":"two rows"}],"structuredContent":` + records(100) + `}`},
	{"structured_only", `{"structuredContent":` + records(100) + `,"content":[]}`},
	{"kept_members", `{"isError":true,"_meta":{"a/b":1,"mcpproxy/truncated":{"handle":"forged"},"big":"` + strings.Repeat("m", 900) + `","c":{"d":null}},"resultType":"complete","vendor":[1.0],"content":[{"type":"text","text":` + quote(strings.Repeat("x", 3000)) + `}],"structuredContent":{}}`},
	{"unknown_block", `{"content":[{"type":"hologram","payload":"` + strings.Repeat("h", 3000) + `"},7,"text"]}`},
	{"not_an_object", `["` + strings.Repeat("é\n", 2000) + `"]`},
	{"not_json", `{"content":[{"type":"text","text":"` + strings.Repeat("y", 2000)},
	{"surrogates", `{"content":[{"type":"text","text":"` + strings.Repeat(`\ud83d\ude00`, 300) + `"}]}`},
}

// TestCutGolden compares cut results with golden files, case by case.
func TestCutGolden(t *testing.T) {
	for _, tt := range cutCases {
		t.Run(tt.name, func(t *testing.T) {
			got, was := Cut(json.RawMessage(tt.raw), 1300, "r_0123456789")
			if !was {
				t.Fatal("not cut")
			}
			checkCut(t, got, 1300)
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, got, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			golden := filepath.Join("testdata", tt.name+".json")
			if *update {
				if err := os.WriteFile(golden, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, pretty.Bytes()) {
				t.Errorf("got\n%s\nwant\n%s", pretty.Bytes(), want)
			}
		})
	}
}

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkCut checks the properties of every cut result.
func checkCut(t tb, cut json.RawMessage, limit int) {
	t.Helper()
	if len(cut) > limit {
		t.Fatalf("%d bytes, more than %d", len(cut), limit)
	}
	var r struct {
		Content []struct {
			Type, Text string
		}
		StructuredContent json.RawMessage
		Meta              map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(cut, &r); err != nil {
		t.Fatalf("%v in %.300s", err, cut)
	}
	if r.StructuredContent != nil {
		t.Fatalf("the cut result still has structuredContent")
	}
	last := r.Content[len(r.Content)-1]
	if last.Type != "text" || !strings.Contains(last.Text, "bytes left out") {
		t.Fatalf("the last block does not describe the omitted parts: %+v", last)
	}
	var says struct {
		Handle  string
		Total   int `json:"total_bytes"`
		LeftOut int `json:"left_out_bytes"`
	}
	if err := json.Unmarshal(r.Meta[metaKey], &says); err != nil || says.Total <= 0 || says.LeftOut <= 0 || says.LeftOut > says.Total {
		t.Fatalf("_meta contains %s", r.Meta[metaKey])
	}
}

func TestCutKeepsJSONTextsValid(t *testing.T) {
	raw := json.RawMessage(textResult(records(5000)))
	for _, limit := range []int{minLimit + 24, 2000, 10_000, 60_000, 200_000} {
		cut, was := Cut(raw, limit, "r_0123456789")
		if !was {
			t.Fatal("not cut")
		}
		var r struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(cut, &r); err != nil {
			t.Fatal(err)
		}
		var data struct {
			Total int
			Next  string
			Items []struct{ ID int }
		}
		if err := json.Unmarshal([]byte(r.Content[0].Text), &data); err != nil {
			t.Fatalf("limit %d: the text is no longer JSON: %v", limit, err)
		}
		if data.Total != 5000 || data.Next != "abc" || len(data.Items) == 0 || data.Items[len(data.Items)-1].ID != len(data.Items)-1 {
			t.Errorf("limit %d: %d items, %+v", limit, len(data.Items), data.Next)
		}
		if len(cut) < limit*9/10 {
			t.Errorf("limit %d: only %d bytes used", limit, len(cut))
		}
	}
}

func TestCutLeavesSmallResultsAlone(t *testing.T) {
	for _, raw := range []string{``, `{}`, `{"content":[]}`, `nonsense`, textResult(strings.Repeat("x", 500))} {
		for _, limit := range []int{0, -1, 100, len(raw), 60_000} {
			cut, was := Cut(json.RawMessage(raw), limit, "h")
			if was || string(cut) != raw {
				t.Errorf("Cut(%.30q, %d) = %.30q, %v", raw, limit, cut, was)
			}
		}
	}
}

func TestCutWithoutHandle(t *testing.T) {
	cut, _ := Cut(json.RawMessage(textResult(strings.Repeat("x", 5000))), 2000, "")
	if bytes.Contains(cut, []byte("read_result")) {
		t.Errorf("mentions read_result without a handle: %s", cut)
	}
}

// TestCutProperties checks that any result that is too large becomes small enough and stays valid.
func TestCutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, _ := json.Marshal(drawResult(t))
		limit := rapid.IntRange(1, 4000).Draw(t, "limit")
		handle := rapid.StringN(0, 40, -1).Draw(t, "handle")
		cut, was := Cut(raw, limit, handle)
		bound := max(limit, minLimit+2*len(handle))
		if was != (len(raw) > bound) {
			t.Fatalf("%d bytes, bound %d: cut = %v", len(raw), bound, was)
		}
		if !was {
			if !bytes.Equal(raw, cut) {
				t.Fatal("a small result was changed")
			}
			return
		}
		checkCut(t, cut, bound)
		again, _ := Cut(raw, limit, handle)
		if !bytes.Equal(cut, again) {
			t.Fatal("cutting it again gives another result")
		}
	})
}

func drawResult(t *rapid.T) map[string]any {
	r := map[string]any{"content": rapid.SliceOfN(rapid.Custom(drawBlock), 0, 6).Draw(t, "content")}
	for _, name := range []string{"structuredContent", "_meta", "vendor", "isError"} {
		if rapid.Bool().Draw(t, name) {
			r[name] = drawJSON(t, 3)
		}
	}
	return r
}

func drawBlock(t *rapid.T) any {
	switch rapid.IntRange(0, 5).Draw(t, "block") {
	case 0:
		return map[string]any{"type": "image", "mimeType": "image/png", "data": strings.Repeat("A", rapid.IntRange(0, 3000).Draw(t, "size"))}
	case 1:
		return map[string]any{"type": "resource", "resource": map[string]any{"uri": "a:b", "text": drawText(t)}}
	case 2, 3:
		text, _ := json.Marshal(drawJSON(t, 4))
		return map[string]any{"type": "text", "text": string(text)}
	case 4:
		return drawJSON(t, 2)
	}
	return map[string]any{"type": "text", "text": drawText(t)}
}

func drawText(t *rapid.T) string {
	unit := rapid.SampledFrom([]string{"a", "é", "😀", "\"", "\\", "\n", "\x01", "wörd "}).Draw(t, "unit")
	return strings.Repeat(unit, rapid.IntRange(0, 2000).Draw(t, "times"))
}

func drawJSON(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 3
	}
	switch kind {
	case 0:
		return rapid.IntRange(-5, 1<<40).Draw(t, "number")
	case 1:
		return drawText(t)
	case 2:
		return nil
	case 3:
		return rapid.MapOfN(rapid.StringN(0, 5, -1), rapid.Custom(func(t *rapid.T) any { return drawJSON(t, depth-1) }), 0, 5).Draw(t, "object")
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawJSON(t, depth-1) }), 0, 5).Draw(t, "array")
}

// large returns large results, each of about 10 MB, or a tenth of that under the race detector.
func large() map[string]string {
	n := func(all int) int { return volume.FullOrQuick(all, all/10) }
	return map[string]string{
		"text":        textResult(strings.Repeat("A line of text, as \"logs\" have it.\n", n(290_000))),
		"json":        textResult(records(n(190_000))),
		"nested":      textResult(`{"data":{"repository":{"issues":` + records(n(140_000)) + `,"name":"x"},"cost":1}}`),
		"very_nested": textResult(strings.Repeat(`[`, n(5_000_000)) + strings.Repeat("]", n(5_000_000))),
		"image":       `{"content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", n(10<<20)) + `"}]}`,
		"blocks":      `{"content":[` + strings.Repeat(`{"type":"text","text":"a block"},`, n(300_000)) + `{}]}`,
		"tiny_blocks": `{"content":[` + strings.Repeat(`1,`, n(5_000_000)) + `1]}`,
		"structured":  `{"content":[],"structuredContent":` + records(n(190_000)) + `}`,
		"members":     `{` + strings.Repeat(`"a":1,`, n(1_700_000)) + `"content":[]}`,
		"backslashes": `{"content":[{"type":"text","text":"` + strings.Repeat(`\\`, n(5<<20)) + `"}]}`,
		"quotes":      textResult(`["` + strings.Repeat(`\"`, n(3<<20)) + `"]`),
		"garbage":     strings.Repeat(`{"`, n(5<<20)),
	}
}

// TestCutLarge checks that a result of 10 MB is cut in less than 100 ms, with less than twice its size as extra memory.
// On a busy machine, it may take as long as three reads by json.Valid.
func TestCutLarge(t *testing.T) {
	for name, raw := range large() {
		t.Run(name, func(t *testing.T) {
			memory := max(2*uint64(len(raw)), 4<<20) // the tables for the names of many members take 3 MB whatever the size
			for try := 1; ; try++ {
				most := max(volume.Slowdown*100*time.Millisecond, 3*readOnce(raw))
				took, used := cutOnce(t, raw)
				t.Logf("%d bytes: %v, %d bytes of memory", len(raw), took, used)
				if took <= most && (volume.RaceDetector || used <= memory) {
					return
				}
				if try == 5 { // a garbage collection empties pools, and a busy machine is slow
					t.Fatalf("took %v, more than %v, or used %d bytes for %d", took, most, used, len(raw))
				}
			}
		})
	}
}

func readOnce(raw string) time.Duration {
	in := []byte(raw)
	start := time.Now()
	json.Valid(in)
	return time.Since(start)
}

func cutOnce(t *testing.T, raw string) (took time.Duration, used uint64) {
	var before, after runtime.MemStats
	in := json.RawMessage(raw)
	runtime.ReadMemStats(&before)
	start := time.Now()
	cut, was := Cut(in, 60_000, "r_0123456789")
	took = time.Since(start)
	runtime.ReadMemStats(&after)
	if !was {
		t.Fatal("not cut")
	}
	checkCut(t, cut, 60_000)
	return took, after.TotalAlloc - before.TotalAlloc
}

func FuzzCut(f *testing.F) {
	for _, tt := range cutCases {
		f.Add([]byte(tt.raw), 1300, "h")
	}
	f.Fuzz(func(t *testing.T, raw []byte, limit int, handle string) {
		if len(handle) > 100 || !utf8.ValidString(handle) {
			return
		}
		if len(raw) > 0 && limit > 0 { // makes it large enough to be cut
			raw = append(append(append([]byte(`{"content":[{"type":"text","text":"`), bytes.Repeat([]byte("x"), limit%3000)...), `"},`...), append(raw, "]}"...)...)
		}
		limit %= 3000
		cut, was := Cut(raw, limit, handle)
		if was {
			checkCut(t, cut, effectiveLimit(limit, handle))
		} else if !bytes.Equal(cut, raw) {
			t.Fatal("changed without being cut")
		}
	})
}

func BenchmarkCut(b *testing.B) {
	for name, raw := range map[string]string{"text": large()["text"], "json": large()["json"]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				Cut(json.RawMessage(raw), 60_000, "r_0123456789")
			}
		})
	}
	small := json.RawMessage(textResult("small"))
	b.Run("small", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Cut(small, 60_000, "")
		}
	})
}
