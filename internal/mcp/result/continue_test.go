package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mcpproxy/internal/testutil/volume"
)

const aHandle = "HANDLE"

// told is a parsed line with instructions for reading the rest.
type told struct {
	kept, total int
	unit        string
	call        struct {
		Handle, Path string
		Offset       int
	}
}

var lineForm = regexp.MustCompile(`^(\d+) of (\d+) (elements|members|characters) of (.+); continue with read_result (\{"handle": .*\})$`)

func readLine(t tb, line string) (l told) {
	t.Helper()
	m := lineForm.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("not a line with instructions for reading on: %q", line)
	}
	l.kept, _ = strconv.Atoi(m[1])
	l.total, _ = strconv.Atoi(m[2])
	l.unit = m[3]
	if err := json.Unmarshal([]byte(m[5]), &l.call); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	if l.call.Handle != aHandle || l.call.Offset != l.kept || l.kept >= l.total || m[4] != strings.Map(replaceControlChar, l.call.Path) && (l.call.Path != "" || m[4] != "the result") {
		t.Fatalf("%q is parsed as %+v", line, l)
	}
	return l
}

// follow follows the instructions of the line and of the parts to the end. It returns the value in the line's unit: a
// []any, a map[string]any or a string.
func follow(t tb, raw json.RawMessage, l told) (all any) {
	t.Helper()
	for offset := l.call.Offset; ; {
		p, err := ReadPart(raw, ReadOptions{Handle: l.call.Handle, Path: l.call.Path, Offset: offset})
		if err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		if p.Offset != offset || p.Total != l.total || p.Unit != l.unit {
			t.Fatalf("%+v leads to %d of %d %s", l, p.Offset, p.Total, p.Unit)
		}
		var part any = decodeAny(t, p.Content)
		lines := p.Continue
		if p.NextOffset > 0 {
			own := readLine(t, lines[len(lines)-1])
			if lines = lines[:len(lines)-1]; own.call.Path != l.call.Path || own.call.Offset != p.NextOffset {
				t.Fatalf("%+v continues with %+v", l, own)
			}
		}
		for _, line := range lines {
			inner := readLine(t, line)
			base, _ := parsePath(p.Path)
			steps, err := parsePath(inner.call.Path)
			if err != nil || formatPath(steps[:len(base)]...) != formatPath(base...) {
				t.Fatalf("%s: %v within %s", line, err, p.Path)
			}
			if steps = steps[len(base):]; steps[0].kind == element {
				steps[0].from -= p.Offset
			}
			part = fill(t, part, steps, inner, follow(t, raw, inner))
		}
		all = join(t, all, part)
		if p.NextOffset == 0 {
			return all
		}
		offset = p.NextOffset
	}
}

func join(t tb, a, b any) any {
	t.Helper()
	switch b := b.(type) {
	case []any:
		a, _ := a.([]any)
		return append(a, b...)
	case map[string]any:
		a, _ := a.(map[string]any)
		if a == nil {
			return b
		}
		for name, v := range b {
			if _, twice := a[name]; twice {
				t.Fatalf("%q occurs twice", name)
			}
			a[name] = v
		}
		return a
	}
	s, _ := a.(string)
	return s + b.(string)
}

// fill inserts the rest of a value at the position of the shown value to which the steps lead.
func fill(t tb, shown any, steps []pathStep, l told, rest any) any {
	t.Helper()
	if len(steps) > 0 && !steps[0].matchesMany() {
		switch v := shown.(type) {
		case []any:
			v[steps[0].from] = fill(t, v[steps[0].from], steps[1:], l, rest)
		case map[string]any:
			v[steps[0].name] = fill(t, v[steps[0].name], steps[1:], l, rest)
		default:
			t.Fatalf("%+v leads into %v", l, shown)
		}
		return shown
	}
	n := 0
	switch v := shown.(type) {
	case []any:
		n = len(v)
	case map[string]any:
		n = len(v)
	case string:
		shown = strings.TrimSuffix(v, ellipsis)
		n = utf8.RuneCountInString(shown.(string))
	}
	if n != l.kept {
		t.Fatalf("%+v, but %d units are shown", l, n)
	}
	return join(t, shown, rest)
}

func decodeAny(t tb, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %.200s", err, raw)
	}
	return v
}

type content struct {
	Content    []map[string]any
	Structured any `json:"structuredContent"`
}

// rebuild cuts a result, follows its instructions, and checks that they return the whole result. It returns the number
// of instruction lines.
func rebuild(t tb, raw json.RawMessage, limit int) int {
	t.Helper()
	cut, was := Cut(raw, limit, aHandle)
	if !was {
		return 0
	}
	var whole, shown content
	for _, v := range []struct {
		raw []byte
		to  *content
	}{{raw, &whole}, {cut, &shown}} {
		d := json.NewDecoder(bytes.NewReader(v.raw))
		d.UseNumber()
		if err := d.Decode(v.to); err != nil {
			t.Fatalf("%v in %.200s", err, v.raw)
		}
	}
	last := len(shown.Content) - 1
	text := shown.Content[last]["text"].(string)
	lines := strings.Split(text, "\n")[1:]
	if len(lines) == 0 {
		if !strings.HasSuffix(text, `All of it is there with read_result {"handle": "`+aHandle+`"}`) {
			t.Fatalf("the cut result has no instructions for reading on: %s", text)
		}
		if all := follow(t, raw, told{unit: Characters, total: utf8.RuneCount(raw), call: struct {
			Handle, Path string
			Offset       int
		}{Handle: aHandle}}); all != string(raw) {
			t.Fatalf("the parts are not the whole result")
		}
	}
	kept := len(whole.Content)
	for _, line := range lines {
		if l := readLine(t, line); l.call.Path == "content" {
			kept = l.kept
			if !reflect.DeepEqual(toAny(t, whole.Content[kept:]), follow(t, raw, l)) {
				t.Fatalf("%s: the instructions do not return the omitted part", line)
			}
		}
		if l := readLine(t, line); l.call.Path == "" {
			if all := shown.Content[0]["text"].(string) + follow(t, raw, l).(string); all != string(raw) {
				t.Fatalf("the parts are not the whole result")
			}
			return len(lines)
		}
	}
	// datum is a position that may contain data, with its shown text and the expected text.
	type datum struct {
		at          string
		shown       string
		value, want any
	}
	var data []*datum
	first := -1 // index of the first block with JSON
	for i := range kept {
		d := &datum{at: fmt.Sprintf("content[%d].text", i)}
		block := whole.Content[i]
		d.want, _ = block["text"].(string)
		d.shown, _ = shown.Content[i]["text"].(string)
		if inner, ok := block["resource"].(map[string]any); ok {
			d.at = fmt.Sprintf("content[%d].resource.text", i)
			d.want, _ = inner["text"].(string)
			inner, _ = shown.Content[i]["resource"].(map[string]any)
			d.shown, _ = inner["text"].(string)
		} else if block["type"] != "text" {
			continue
		}
		data = append(data, d)
	}
	for i, block := range whole.Content {
		if s, ok := block["text"].(string); ok && first < 0 && jsonInString([]byte(quote(s))) != nil {
			first = i
		}
	}
	if last == kept+1 {
		data = append(data, &datum{at: "structuredContent", shown: shown.Content[kept]["text"].(string), want: whole.Structured})
	}
	for _, line := range lines {
		l := readLine(t, line)
		if l.call.Path == "content" {
			continue
		}
		var to *datum
		for _, d := range data {
			if rest, ok := strings.CutPrefix(l.call.Path, d.at); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				to = d
				l.call.Path, line = rest, l.call.Path
			}
		}
		if to == nil && (l.call.Path != "structuredContent" || whole.Structured == nil) { // a short path
			at := "structuredContent"
			if first >= 0 {
				at = fmt.Sprintf("content[%d].text", first)
			}
			for _, d := range data {
				if d.at == at {
					to, line = d, l.call.Path
				}
			}
		}
		if to == nil {
			if l.call.Path == "structuredContent" && whole.Structured != nil {
				if !reflect.DeepEqual(whole.Structured, follow(t, raw, l)) || l.kept != 0 {
					t.Fatalf("%+v: the instructions do not return the omitted part", l)
				}
				last = kept + 1 // the line is at the position of the gap
				continue
			}
			t.Fatalf("%+v refers to no shown value", l)
		}
		rest := l
		rest.call.Path = line
		steps, err := parsePath(l.call.Path)
		if err != nil {
			t.Fatalf("%v", err)
		}
		switch {
		case len(steps) == 0 && to.at != "structuredContent":
			to.value = fill(t, to.shown, nil, l, follow(t, raw, rest))
			continue
		case to.value == nil:
			to.value = decodeAny(t, []byte(to.shown))
			if s, ok := to.want.(string); ok {
				to.want = decodeAny(t, []byte(s))
			}
		}
		to.value = fill(t, to.value, steps, l, follow(t, raw, rest))
	}
	for _, d := range data {
		if d.value == nil {
			if d.value = d.shown; d.at == "structuredContent" {
				d.value = decodeAny(t, []byte(d.shown))
			}
		}
		if !reflect.DeepEqual(d.want, d.value) {
			t.Fatalf("%s differs from the original\n%.2000v\n%.2000v\n%s", d.at, d.want, d.value, text)
		}
	}
	if whole.Structured != nil && last != kept+1 && first < 0 && countEntries(rawOf(t, whole.Structured)) > 0 && len(lines) > 0 {
		t.Fatalf("structuredContent is not mentioned:\n%s", text)
	}
	return len(lines)
}

func rawOf(t tb, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return raw
}

func toAny(t tb, v any) any { return decodeAny(t, rawOf(t, v)) }

// TestContinue checks that the instructions in a cut result, followed exactly, return the parts that it omitted.
func TestContinue(t *testing.T) {
	lines := 0
	rapid.Check(t, func(t *rapid.T) {
		lines += rebuild(t, rawOf(t, drawData(t)), rapid.SampledFrom([]int{1100, 1300, 2000, 3000, 10_000, 60_000}).Draw(t, "limit"))
	})
	if lines == 0 {
		t.Error("nothing was cut")
	}
}

func TestContinueCases(t *testing.T) {
	for _, tt := range cutCases {
		if json.Valid([]byte(tt.raw)) && tt.name != "unknown_block" && tt.name != "json_many_members" { // which has the same name many times
			t.Run(tt.name, func(t *testing.T) { rebuild(t, json.RawMessage(tt.raw), 1300) })
		}
	}
	huge := strings.Repeat("wörd ", volume.FullOrQuick(30_000, 6_000))
	for name, raw := range map[string]string{
		"huge elements":       textResult(`{"items":[1,` + quote(huge) + `,{"body":` + quote(huge) + `,"n":1},[` + quote(huge) + `,2],5]}`),
		"names as at the top": textResult(`{"content":[` + strings.Repeat(`"abc",`, 900) + `1],"structuredContent":` + quote(huge) + `}`),
		"both":                `{"content":[{"type":"text","text":` + quote("  "+records(500)) + `}],"structuredContent":` + records(500) + `}`,
		"different":           `{"content":[{"type":"text","text":"[1,2]"},{"type":"text","text":"[3]"}],"structuredContent":` + records(500) + `}`,
		"many large blocks":   `{"content":[` + strings.Repeat(`{"type":"text","text":`+quote(records(50))+`},`, 50) + `{"type":"image","data":"AAAA"}]}`,
		"spaced":              textResult(" \n{ \"a\" : [ 1 , 2 ,\n" + strings.Repeat(" 3 ,", 3000) + " 4 ] } \n"),
		"not a number":        textResult(`[1,2,` + strings.Repeat("3,", 3000) + `NaN]`),
		"a number of its own": textResult(`{"a":1` + strings.Repeat("0", 9000) + `,"b":[1,2]}`),
		"a long name":         textResult(`{"` + strings.Repeat("name", 1000) + `":[1,2,3],"b":[` + strings.Repeat("1,", 3000) + `1]}`),
		"a nest":              textResult(strings.Repeat(`{"a":[`, 200) + strings.Repeat("1,", 3000) + "1" + strings.Repeat("]}", 200)),
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{1100, 1300, 2000, 5000} {
				if rebuild(t, json.RawMessage(raw), limit) == 0 {
					t.Errorf("limit %d: there are no instructions for reading on", limit)
				}
			}
		})
	}
}

func drawData(t *rapid.T) map[string]any {
	r := map[string]any{"content": rapid.SliceOfN(rapid.Custom(drawDataBlock), 0, 12).Draw(t, "content")}
	if rapid.Bool().Draw(t, "structured") {
		r["structuredContent"] = drawObject(t, 3)
	}
	return r
}

func drawDataBlock(t *rapid.T) any {
	switch rapid.IntRange(0, 6).Draw(t, "block") {
	case 0:
		return map[string]any{"type": "image", "mimeType": "image/png", "data": strings.Repeat("A", rapid.IntRange(0, 3000).Draw(t, "size"))}
	case 1:
		return map[string]any{"type": "resource", "resource": map[string]any{"uri": "a:b", "text": drawLong(t)}}
	case 2:
		return map[string]any{"type": "text", "text": drawLong(t)}
	}
	text, _ := json.Marshal(drawValue(t, 4))
	return map[string]any{"type": "text", "text": string(text)}
}

func drawLong(t *rapid.T) string {
	unit := rapid.SampledFrom([]string{"a", "é", "😀", "\"", "\\", "\n", "\x01", "wörd ", "\u2028"}).Draw(t, "unit")
	return strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, 3, 10, 500, 3000, 30_000}).Draw(t, "times"))
}

func drawObject(t *rapid.T, depth int) any {
	names := rapid.SampledFrom([]string{"", "a.b", "c[0]", "it's", `q"q`, `back\slash`, `\'`, "ünï", "content", "structuredContent", "items", "$", "$x", "*", "[*]", "1:2", " x ", "\n", "']", "a", "b", "c"})
	return rapid.MapOfN(names, rapid.Custom(func(t *rapid.T) any { return drawValue(t, depth-1) }), 0, 12).Draw(t, "object")
}

func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind %= 3
	}
	switch kind {
	case 0:
		return rapid.IntRange(-5, 1<<40).Draw(t, "number")
	case 1:
		return drawLong(t)
	case 2:
		return nil
	case 3, 4:
		return drawObject(t, depth)
	}
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawValue(t, depth-1) }), 0, 6).Draw(t, "array")
	for range rapid.SampledFrom([]int{0, 0, 0, 40, 300}).Draw(t, "more") {
		list = append(list, len(list))
	}
	return list
}
