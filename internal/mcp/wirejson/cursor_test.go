package wirejson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// endOf returns the end of the value at the start of data, and checks the value.
func endOf(data []byte, depth int) (int, error) {
	c := Cursor{Text: data, Depth: depth}
	if c.ReadValue() == nil {
		return 0, c.Finish()
	}
	return c.Offset(), nil
}

// walk reads the next value, enters all containers, and appends the value without white space.
func walk(c *Cursor, out []byte) []byte {
	bracket := c.Peek()
	if bracket != '{' && bracket != '[' {
		return append(out, c.ReadValue()...)
	}
	out = append(out, bracket)
	end := c.Enter(bracket)
	for first := true; c.More(end); first = false {
		if !first {
			out = append(out, ',')
		}
		if end == '}' {
			out = append(append(append(out, '"'), c.ReadName()...), `":`...)
		}
		if out = walk(c, out); c.err != nil {
			return out
		}
	}
	return append(out, end)
}

func TestCursor(t *testing.T) {
	long := strings.Repeat(`long text, `, 20)
	for _, c := range []struct{ text, reason string }{
		{` { "a" : 1 , "b" : [ true , null , "x\"}" , { } ] , "" : -1.5e3 } `, ""},
		{`[]`, ""},
		{`"` + long + `\\"`, ""},
		{`["` + long + `\\\"` + long + `",2]`, ""},
		{`["` + strings.Repeat(`\"`, 50) + long + `\\"]`, ""},
		{``, "expected a value"},
		{`[`, "expected a value"},
		{`[1`, "expected a comma or the end of the array"},
		{`[1,`, "expected a value"},
		{`[1,]`, "expected a value"},
		{`[,1]`, "expected a value"},
		{`[1 2]`, "expected a comma or the end of the array"},
		{`[1}`, "expected a comma or the end of the array"},
		{`[[`, "expected a value"},
		{`["`, "expected a value"},
		{`["a\`, "expected a value"},
		{`["` + long, "expected a value"},
		{`["` + long + `\"`, "expected a value"},
		{`["a"b]`, "expected a comma or the end of the array"},
		{`[1] 2`, "there is something after the value"},
		{`{"a"}`, "expected a colon after the member name"},
		{`{"a":}`, "expected a value"},
		{`{"a":1,}`, "expected a member name in double quotes"},
		{`{a:1}`, "expected a member name in double quotes"},
		{`{"a":1]`, "expected a comma or the end of the object"},
	} {
		cur := Cursor{Text: []byte(c.text)}
		out := walk(&cur, nil)
		err, reason := cur.Finish(), ""
		if err != nil {
			reason = err.(*Error).Reason
		}
		var want bytes.Buffer
		if reason != c.reason || err == nil && (json.Compact(&want, cur.Text) != nil || want.String() != string(out)) {
			t.Errorf("%s: %s, %q, want %q", c.text, out, reason, c.reason)
		}
	}
	if c := (Cursor{Text: []byte("[1]")}); c.Enter('{') != 0 || c.More(0) || c.Offset() != 0 {
		t.Error("an array is opened as an object")
	}
}

// FuzzCursor checks that a cursor reads valid text as encoding/json does, with checks and without, and does not panic
// on any other text.
func FuzzCursor(f *testing.F) {
	for _, r := range corpus(f) {
		if len(r.B64) < 4096 {
			f.Add(r.B64)
		}
	}
	f.Add([]byte(`{"a":"` + strings.Repeat("x", 60) + `\\\"` + strings.Repeat(`\\`, 40) + `","b":[{},[1,"` + strings.Repeat("y", 40) + `"]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var want bytes.Buffer
		sound := json.Compact(&want, data) == nil
		for _, depth := range []int{0, 9000} {
			c := Cursor{Text: data, Depth: depth}
			if out := walk(&c, nil); sound && (c.Finish() != nil || !bytes.Equal(out, want.Bytes())) {
				t.Fatalf("%q, depth %d: %q, %v", data, depth, out, c.Finish())
			}
			c = Cursor{Text: data, Depth: depth}
			c.ReadValue()
			if err := c.Finish(); sound && err != nil || !sound && err == nil && depth > 0 {
				t.Fatalf("%q, depth %d: %v", data, depth, err)
			}
		}
	})
}
