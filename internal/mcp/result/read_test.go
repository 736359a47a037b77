package result

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpproxy/internal/problem"
)

var sample = json.RawMessage(`{"content":[{"type":"text","text":"Grüße 😀"},{"type":"text","text":"{\"items\":[1,2,{\"a\":\"x\"}],\"next\":\"abc\"}"}],
	"structuredContent":{"rows":[[1,2],[3,4]],"a.b":{"c\"d":true},"ü":"ü"},"isError":false}`)

func TestRead(t *testing.T) {
	tests := []struct {
		name, path    string
		offset, limit int
		want          Part
	}{
		{"an array by elements", "$.structuredContent.rows", 0, 1,
			Part{Path: "$.structuredContent.rows", NextOffset: 1, Total: 2, Unit: elements, Content: json.RawMessage(`[[1,2]]`),
				Continue: []string{`1 of 2 elements of $.structuredContent.rows; continue with read_result {"handle": "h", "path": "$.structuredContent.rows", "offset": 1}`}}},
		{"the rest of it", "structuredContent.rows", 1, 5,
			Part{Path: "$.structuredContent.rows", Offset: 1, Total: 2, Unit: elements, Content: json.RawMessage(`[[3,4]]`)}},
		{"a string by characters", "$.content[0].text", 0, 3,
			Part{Path: "$.content[0].text", NextOffset: 3, Total: 7, Unit: Characters, Content: json.RawMessage(`"Grü"`),
				Continue: []string{`3 of 7 characters of $.content[0].text; continue with read_result {"handle": "h", "path": "$.content[0].text", "offset": 3}`}}},
		{"its last character", "$.content[0].text", 6, 1,
			Part{Path: "$.content[0].text", Offset: 6, Total: 7, Unit: Characters, Content: json.RawMessage(`"😀"`)}},
		{"another value by its JSON", "$.structuredContent.rows[1][0]", 0, 0,
			Part{Path: "$.structuredContent.rows[1][0]", Total: 1, Unit: Characters, Content: json.RawMessage(`"3"`)}},
		{"an object by members", "$.structuredContent", 1, 1,
			Part{Path: `$.structuredContent`, Offset: 1, NextOffset: 2, Total: 3, Unit: members, Content: json.RawMessage(`{"a.b":{"c\"d":true}}`),
				Continue: []string{`2 of 3 members of $.structuredContent; continue with read_result {"handle": "h", "path": "$.structuredContent", "offset": 2}`}}},
		{"a name with a dot", "$.structuredContent['a.b']", 0, 0,
			Part{Path: `$.structuredContent['a.b']`, Total: 1, Unit: members, Content: json.RawMessage(`{"c\"d":true}`)}},
		{"an escaped name", `$.structuredContent["a.b"]['c"d']`, 0, 0,
			Part{Path: `$.structuredContent['a.b']['c"d']`, Total: 4, Unit: Characters, Content: json.RawMessage(`"true"`)}},
		{"one with a backslash", `$.structuredContent["a.b"]["c\"d"]`, 0, 0,
			Part{Path: `$.structuredContent['a.b']['c"d']`, Total: 4, Unit: Characters, Content: json.RawMessage(`"true"`)}},
		{"into JSON in a text", "$.content[1].text.items[2].a", 0, 0,
			Part{Path: "$.content[1].text.items[2].a", Total: 1, Unit: Characters, Content: json.RawMessage(`"x"`)}},
		{"from where the data is", " items ", 1, 1,
			Part{Path: "$.content[1].text.items", Offset: 1, NextOffset: 2, Total: 3, Unit: elements, Content: json.RawMessage(`[2]`),
				Continue: []string{`2 of 3 elements of  items ; continue with read_result {"handle": "h", "path": " items ", "offset": 2}`}}},
		{"from structured content", "$.rows[*]", 0, 0,
			Part{Path: "$.structuredContent.rows", Total: 2, Unit: elements, Content: json.RawMessage(`[[1,2],[3,4]]`)}},
		{"what the text is", "[*]", 0, 1,
			Part{Path: "$.content[1].text", NextOffset: 1, Total: 2, Unit: members, Content: json.RawMessage(`{"items":[1,2,{"a":"x"}]}`),
				Continue: []string{`1 of 2 members of [*]; continue with read_result {"handle": "h", "path": "[*]", "offset": 1}`}}},
		{"a name that is no word", "$['ü']", 0, 0,
			Part{Path: `$.structuredContent['ü']`, Total: 1, Unit: Characters, Content: json.RawMessage(`"ü"`)}},
		{"from the end", "$.content[-1].text.items[-3]", 0, 0,
			Part{Path: `$.content[1].text.items[0]`, Total: 1, Unit: Characters, Content: json.RawMessage(`"1"`)}},
		{"a slice", "items[1:]", 1, 1,
			Part{Path: `$.content[1].text.items[1:]`, Offset: 1, Total: 2, Unit: elements, Content: json.RawMessage(`[{"a":"x"}]`)}},
		{"a slice from the end", "items[-2:-1]", 0, 0,
			Part{Path: `$.content[1].text.items[-2:-1]`, Total: 1, Unit: elements, Content: json.RawMessage(`[2]`)}},
		{"a slice of nothing", "items[5:9]", 0, 0,
			Part{Path: `$.content[1].text.items[5:9]`, Unit: elements, Content: json.RawMessage(`[]`)}},
		{"one member of each", "content[*].text", 0, 1,
			Part{Path: `$.content[*].text`, NextOffset: 1, Total: 2, Unit: elements, Content: json.RawMessage(`["Grüße 😀"]`),
				Continue: []string{`1 of 2 elements of content[*].text; continue with read_result {"handle": "h", "path": "content[*].text", "offset": 1}`}}},
		{"of those that have it", "items[*].a", 0, 0,
			Part{Path: `$.content[1].text.items[*].a`, Total: 1, Unit: elements, Content: json.RawMessage(`["x"]`)}},
		{"all of each", "rows[*][*]", 1, 2,
			Part{Path: `$.structuredContent.rows[*][*]`, Offset: 1, NextOffset: 3, Total: 4, Unit: elements, Content: json.RawMessage(`[2,3]`),
				Continue: []string{`3 of 4 elements of rows[*][*]; continue with read_result {"handle": "h", "path": "rows[*][*]", "offset": 3}`}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadPart(sample, ReadOptions{Handle: "h", Path: tt.path, Offset: tt.offset, Limit: tt.limit})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct {
		name          string
		raw           json.RawMessage
		path          string
		offset, limit int
		parameter     string
		message       string
		allowed       string
	}{
		{"a negative offset", sample, "", -1, 0, "offset", "offset must not be negative.", "an offset of 0 or more"},
		{"a negative limit", sample, "", 0, -5, "limit", "limit must not be negative.", "a limit of 1 or more, or none"},
		{"an offset after the end", sample, "$.structuredContent.rows", 2, 0, "offset", "offset 2 is at or after the end: there are 2 elements.", "an offset from 0 to 1"},
		{"no path", sample, "$.content[", 0, 0, "path", `The path cannot be read at "[".`, pathForm},
		{"no number", sample, "$.content[x].text", 0, 0, "path", `The path cannot be read at "[x].text".`, pathForm},
		{"no slice", sample, "$.content[1:x]", 0, 0, "path", `The path cannot be read at "[1:x]".`, pathForm},
		{"an open quote", sample, "$['content]", 0, 0, "path", `The path cannot be read at "['content]".`, pathForm},
		{"too long a path", sample, strings.Repeat("a", maxPath+1), 0, 0, "path", "The path has 4097 bytes, more than the 4096 that are read.", pathForm},
		{"too many steps", sample, strings.Repeat("[0]", maxSteps+1), 0, 0, "path", "The path has more than 64 steps.", pathForm},
		{"too far from the end", sample, "$.content[-3]", 0, 0, "path", "There is no [-3] at $.content.", "an element from [0] to [1]"},
		{"a member of no element", sample, "items[*].b", 0, 0, "path", "There is no .b at $.content[1].text.items[0].", "a path that ends at $.content[1].text.items[0]"},
		{"all of a number", sample, "rows[0][0][*]", 0, 0, "path", "There is no [*] at $.structuredContent.rows[0][0].", "a path that ends at $.structuredContent.rows[0][0]"},
		{"a slice of an object", sample, "$.structuredContent[0:1]", 0, 0, "path", "There is no [0:1] at $.structuredContent.", "one of the members rows, a.b, ü"},
		{"an element of an empty array", json.RawMessage(`{"content":[]}`), "content[0]", 0, 0, "path", "There is no [0] at $.content.", "a path that ends at $.content, an array without elements"},
		{"an element that is not there", sample, "$.content[2].text", 0, 0, "path", "There is no [2] at $.content.", "an element from [0] to [1]"},
		{"a member that is not there", sample, "$.structuredContent.row", 0, 0, "path", "There is no .row at $.structuredContent.", "one of the members rows, a.b, ü"},
		{"a member of a number", sample, "$.structuredContent.rows[0][0].x", 0, 0, "path", "There is no .x at $.structuredContent.rows[0][0].", "a path that ends at $.structuredContent.rows[0][0]"},
		{"a first step that is nowhere", sample, "$.nothing", 0, 0, "path", "There is no .nothing at $.",
			"one of the members content, structuredContent, isError; in $.content[1].text one of the members items, next; in $.structuredContent one of the members rows, a.b, ü"},
		{"what is not JSON", json.RawMessage(`nonsense`), "a", 0, 0, "path", "There is no .a at $.", "a path that ends at $"},
		{"nothing", nil, "[*]", 0, 0, "path", "The result is empty, so there is nothing at [*].", "no path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadPart(tt.raw, ReadOptions{Path: tt.path, Offset: tt.offset, Limit: tt.limit})
			var p *problem.Problem
			if !errors.As(err, &p) {
				t.Fatalf("error %v, want a problem", err)
			}
			if p.Code != problem.InvalidParameter || p.Detail("parameter") != tt.parameter || p.Message != tt.message || p.Detail("allowed") != tt.allowed {
				t.Errorf("got %s %v\n%s\n%v", p.Code, p.Detail("parameter"), p.Message, p.Detail("allowed"))
			}
		})
	}
}

// TestReadWhole checks that the parts, read one after the other, form the whole result.
func TestReadWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, _ := json.Marshal(drawResult(t))
		if got := joinText(t, raw, "", rapid.IntRange(1, 3000).Draw(t, "limit")); got != string(raw) {
			t.Fatalf("the parts are not the whole result:\n%.300s\n%.300s", got, raw)
		}
		text := drawText(t)
		raw = json.RawMessage(textResult(text))
		if got := joinText(t, raw, "$.content[0].text", rapid.IntRange(0, 3000).Draw(t, "limit")); got != text {
			t.Fatalf("the parts are not the text:\n%.300q\n%.300q", got, text)
		}
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawJSON(t, 1) }), 0, 20).Draw(t, "list")
		want, _ := json.Marshal(list)
		raw = json.RawMessage(`{"structuredContent":{"list":` + string(want) + `}}`)
		if diff := cmp.Diff(decode(t, want), joinElements(t, raw, "list", rapid.IntRange(0, 5).Draw(t, "limit"))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func joinText(t *rapid.T, raw json.RawMessage, path string, limit int) string {
	var b strings.Builder
	for offset := 0; ; {
		p := read(t, raw, path, offset, limit)
		var s string
		if err := json.Unmarshal(p.Content, &s); err != nil {
			t.Fatal(err)
		}
		if b.WriteString(s); p.NextOffset == 0 {
			return b.String()
		}
		offset = p.NextOffset
	}
}

func joinElements(t *rapid.T, raw json.RawMessage, path string, limit int) []any {
	all := []any{}
	for offset := 0; ; {
		p := read(t, raw, path, offset, limit)
		all = append(all, decode(t, p.Content)...)
		if p.NextOffset == 0 {
			return all
		}
		offset = p.NextOffset
	}
}

func read(t *rapid.T, raw json.RawMessage, path string, offset, limit int) Part {
	p, err := ReadPart(raw, ReadOptions{Path: path, Offset: offset, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	if p.NextOffset != 0 && p.NextOffset <= offset {
		t.Fatalf("offset %d has next offset %d", offset, p.NextOffset)
	}
	return p
}

func decode(t *rapid.T, raw json.RawMessage) (v []any) {
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func FuzzRead(f *testing.F) {
	for _, path := range []string{"", "$", "$.content[0].text", "a['b'][\"c\"][0][*]", "[", "..", "['", "[*]"} {
		f.Add([]byte(sample), path, 0, 10)
	}
	f.Fuzz(func(t *testing.T, raw []byte, path string, offset, limit int) {
		p, err := ReadPart(raw, ReadOptions{Path: path, Offset: offset, Limit: limit})
		if err == nil && !json.Valid(p.Content) {
			t.Fatalf("content %s", p.Content)
		}
		if err == nil && (p.Offset > offset || p.NextOffset != 0 && p.NextOffset <= p.Offset || p.NextOffset > p.Total) {
			t.Fatalf("offset %d of %d leads to %d, and then to %d", offset, p.Total, p.Offset, p.NextOffset)
		}
		var known *problem.Problem
		if err != nil && !errors.As(err, &known) {
			t.Fatalf("%v is not a problem.Problem", err)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	raw := json.RawMessage(large()["json"])
	for _, path := range []string{"", "items"} {
		b.Run("path "+path, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ReadPart(raw, ReadOptions{Path: path, Offset: 1000, Limit: 100}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
