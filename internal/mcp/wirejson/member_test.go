package wirejson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func TestSetMember(t *testing.T) {
	for _, c := range []struct{ obj, name, value, want string }{
		{``, "a", `1`, `{"a":1}`},
		{`{}`, "a", `1`, `{"a":1}`},
		{" { } ", "a", `1`, ` {"a":1 } `},
		{`{"b":2}`, "a", `[1]`, `{"b":2,"a":[1]}`},
		{` { "b" : 2 } `, "a", `[1]`, ` { "b" : 2,"a":[1] } `},
		{`{"a":1,"b":{"a":3}}`, "a", `{"x":1}`, `{"a":{"x":1},"b":{"a":3}}`},
		{`{"b":{"a":3}, "a" : "old" ,"c":1}`, "a", `2`, `{"b":{"a":3}, "a" : 2 ,"c":1}`},
		{`{"\u0061":1}`, "a", `2`, `{"\u0061":2}`},
		{`{"a":1,"b":0,"a":2}`, "a", `3`, `{"a":3,"b":0,"a":3}`},
		{`{"A":1}`, "a", `2`, `{"A":1,"a":2}`},
		{`{"n":9007199254740993,"s":"\u00e9\/"}`, "quote\"", `null`, `{"n":9007199254740993,"s":"\u00e9\/","quote\"":null}`},
		{`{"a":1}`, "a", ``, `{"a":null}`},
		{`[1]`, "a", `1`, `[1]`},
		{`{"a":1`, "a", `2`, `{"a":1`},
		{`{"a":1}}`, "b", `2`, `{"a":1}}`},
		{`x`, "a", `1`, `x`},
	} {
		obj := []byte(c.obj)
		var value json.RawMessage
		if c.value != "" {
			value = json.RawMessage(c.value)
		}
		if got := SetMember(obj, c.name, value); string(got) != c.want {
			t.Errorf("SetMember(%s, %s, %s)\ngot  %s\nwant %s", c.obj, c.name, c.value, got, c.want)
		}
		if string(obj) != c.obj {
			t.Errorf("%s was changed to %s", c.obj, obj)
		}
	}
}

func TestAddElement(t *testing.T) {
	for array, want := range map[string]string{
		`[]`: `[1]`, ` [ ] `: ` [ 1] `, `[[2], "]" ]`: `[[2], "]" ,1]`, `{}`: `{}`, `"[]"`: `"[]"`, ``: ``, `[`: `[`,
	} {
		if got := AddElement([]byte(array), []byte("1")); string(got) != want {
			t.Errorf("AddElement to %q: got %q, want %q", array, got, want)
		}
	}
}

func FuzzSetMember(f *testing.F) {
	f.Add([]byte(` { "a" : [1, {"b":"}"}] , "\u0062":2 } `), "b", []byte(`{"x":[]}`))
	f.Add([]byte(`{}`), "\"\n", []byte(`"y"`))
	f.Fuzz(func(t *testing.T, obj []byte, name string, value []byte) {
		var want map[string]any
		var v any
		if json.Unmarshal(value, &v) != nil || !bytes.Equal(value, bytes.TrimSpace(value)) {
			return
		}
		before := bytes.Clone(obj)
		got := SetMember(obj, name, value)
		if !bytes.Equal(obj, before) {
			t.Fatalf("%q was changed to %q", before, obj)
		}
		if json.Unmarshal(obj, &want) != nil || want == nil {
			if !bytes.Equal(got, obj) && len(obj) > 0 && !json.Valid(obj) {
				t.Fatalf("%q, which is not an object, was changed to %q", obj, got)
			}
			return
		}
		encoded, _ := json.Marshal(name)
		var readBack string
		_ = json.Unmarshal(encoded, &readBack) // replaces invalid UTF-8
		if readBack != name {
			return
		}
		want[name] = v
		var have map[string]any
		if err := json.Unmarshal(got, &have); err != nil || !reflect.DeepEqual(have, want) {
			t.Fatalf("SetMember(%q, %q, %q) = %q: %v", obj, name, value, got, err)
		}
	})
}

func TestDropMember(t *testing.T) {
	for _, c := range []struct{ obj, name, want string }{
		{``, "a", ``},
		{`{}`, "a", `{}`},
		{`{"b":{"a":1}}`, "a", `{"b":{"a":1}}`},
		{` { "a" : 1 , "b" : [ 9007199254740993 ] }`, "a", `{"b" : [ 9007199254740993 ]}`},
		{`{"c":1,"\u0061":{"x":1},"b":2,"a":3}`, "a", `{"c":1,"b":2}`},
		{`{"a":1}`, "a", `{}`},
		{`["a"]`, "a", `["a"]`},
		{`{"a":1`, "a", `{"a":1`},
	} {
		obj := []byte(c.obj)
		if got := DropMember(obj, c.name); string(got) != c.want || string(obj) != c.obj {
			t.Errorf("DropMember(%s, %s) = %s, want %s", c.obj, c.name, got, c.want)
		}
	}
}
