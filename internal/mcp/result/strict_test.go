package result

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestStrictForm checks that results that strict clients reject become results that they accept, without losing
// content, and that all others keep their bytes.
func TestStrictForm(t *testing.T) {
	const modern = "modern "
	for raw, want := range map[string]string{
		`{"content":[ {"type":"text", "text":"a","annotations":{"audience":["user"],"priority":1,"lastModified":"2025-01-01T00:00:00Z"},"_meta":{},"x":null} ]}`:                                                                                                                     ``,
		`{"content":[{"type":"image","data":"","mimeType":"image/png"},{"type":"resource","resource":{"uri":"a","blob":""}},{"type":"resource_link","uri":"a","name":"b","size":3,"icons":[{"src":"x","sizes":["1x1"]}]}],"isError":true,"structuredContent":{"a":null},"_meta":{}}`: ``,
		`{"task":{"taskId":"1"}}`:                            ``,
		`{"resultType":"input_required","requestState":"x"}`: ``,
		modern + `{"content":[],"structuredContent":[1]}`:    ``,
		`{}`:                 `{"content":[]}`,
		`{"content":null}`:   `{"content":[]}`,
		`{"content":"well"}`: `{"content":[{"type":"text","text":"well"}]}`,
		`{"content":{"type":"text","text":"well"}}`:                  `{"content":[{"type":"text","text":"well"}]}`,
		`{"toolResult":{"content":[{"type":"text","text":"well"}]}}`: `{"toolResult":{"content":[{"type":"text","text":"well"}]},"content":[{"type":"text","text":"well"}]}`,
		`{"content":[{"type":"text","text":"a","annotations":null,"_meta":null}],"_meta":null,"structuredContent":null,"isError":null}`:              `{"content":[{"type":"text","text":"a"}]}`,
		`{"content":[{"type":"text","text":"a","annotations":[],"_meta":[]}],"_meta":[],"structuredContent":[ ]}`:                                    `{"content":[{"type":"text","text":"a"}],"structuredContent":{}}`,
		`{"content":[{"type":"text","text":"a","annotations":{"priority":"high"}},{"type":"text","text":"b","annotations":{"audience":["model"]}}]}`: `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		`{"content":[{"type":"json","json":{"a":1}},{"type":"error","text":"boom"},"plain",{"type":"text"},{"type":"text","text":5}]}`:               `{"content":[{"type":"text","text":"{\"type\":\"json\",\"json\":{\"a\":1}}"},{"type":"text","text":"boom"},{"type":"text","text":"plain"},{"type":"text","text":"{\"type\":\"text\"}"},{"type":"text","text":"{\"type\":\"text\",\"text\":5}"}]}`,
		`{"content":[{"type":"image","data":"AAAA"},{"type":"resource","resource":{"uri":"a","text":"b","mimeType":null,"_meta":null}},{"type":"resource","resource":{"uri":"a"}},{"type":"resource_link","uri":"a","description":null,"size":"3","icons":[{}]},{"type":"image","data":"data:image/png;base64,AAAA","mimeType":"image/png"}]}`: `{"content":[{"type":"text","text":"The server sent an image block without data or without a media type."},{"type":"resource","resource":{"uri":"a","text":"b"}},{"type":"text","text":"{\"type\":\"resource\",\"resource\":{\"uri\":\"a\"}}"},{"type":"resource_link","uri":"a","name":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}`,
		`{"content":[],"isError":"true"}`:                                  `{"content":[],"isError":true}`,
		`{"content":[],"isError":"false"}`:                                 `{"content":[]}`,
		`{"content":[],"structuredContent":[1]}`:                           `{"content":[{"type":"text","text":"[1]"}]}`,
		`{"structuredContent":"x"}`:                                        `{"content":[{"type":"text","text":"\"x\""}]}`,
		`{"content":[{"type":"text","text":"a"}],"structuredContent":[1]}`: `{"content":[{"type":"text","text":"a"}]}`,
		modern + `{"content":[],"structuredContent":null}`:                 `{"content":[]}`,
	} {
		text, isModern := raw, false
		if len(raw) > len(modern) && raw[:len(modern)] == modern {
			text, isModern = raw[len(modern):], true
		}
		if want == "" {
			want = text
		}
		if got := string(StrictForm(json.RawMessage(text), isModern)); got != want {
			t.Errorf("%s\n got %s\nwant %s", raw, got, want)
		}
	}
}

// TestPlainResultsNeedNoRepair checks that the repair would not change a result that isPlain accepts.
func TestPlainResultsNeedNoRepair(t *testing.T) {
	values := []string{`null`, `true`, `1`, `""`, `"a"`, `"text"`, `"image"`, `"complete"`, `"data:x,y"`, `[]`, `{}`, `[1]`, `{"a":null}`}
	plain := 0
	check := func(raw string) {
		for _, modern := range []bool{false, true} {
			if isPlain(json.RawMessage(raw), modern) {
				plain++
				if got := repair(json.RawMessage(raw), modern); string(got) != raw {
					t.Errorf("modern %v: %s is accepted by isPlain, but would be repaired to %s", modern, raw, got)
				}
			}
		}
	}
	for _, value := range values {
		for _, name := range []string{"content", "structuredContent", "isError", "_meta", "resultType", "task", "toolResult", "other", `is\u0045rror`} {
			check(`{"` + name + `":` + value + `}`)
			check(`{"content":[{"type":"text","text":"a"}],"` + name + `":` + value + `}`)
		}
		for _, name := range []string{"type", "text", "data", "mimeType", "_meta", "annotations", "resource", "other", `te\u0078t`} {
			for _, kind := range []string{`"text"`, `"image"`, `"audio"`, `"resource"`, `"resource_link"`} {
				for _, rest := range []string{``, `,"text":"b"`, `,"data":"","mimeType":"image/png"`, `,"uri":"u","name":"n"`} {
					check(`{"content":[{"type":` + kind + rest + `,"` + name + `":` + value + `}]}`)
					check(`{"content":[{"` + name + `":` + value + `,"type":` + kind + rest + `}]}`)
				}
			}
		}
	}
	if plain < 100 {
		t.Errorf("only %d results are accepted by isPlain", plain)
	}
}

func BenchmarkStrictForm(b *testing.B) {
	for _, size := range []int{100, 2_000, 60_000} {
		for name, text := range map[string]string{"text": "some text ", "JSON": `{\"a\": 1}`} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				raw := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat(text, size/len(text)) + `"}]}`)
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					StrictForm(raw, false)
				}
			})
		}
	}
}
