package result

import (
	"encoding/json"
	"testing"
)

// TestStrictForm: what strict clients reject becomes what they accept, and keeps what the tool said. Everything else
// keeps its bytes.
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
