package tool

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		// RFC 8785, sections 3.2.2 (except for its 333333333.33333329, which would lose a digit) and 3.2.3.
		{`{"numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
		   "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"` + "€$" + `\u000f\nA'B\"\\\\\"/"}`},
		{`{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
		   "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`},
		{` [ ] `, `[]`}, {` { } `, `{}`}, {` "a" `, `"a"`}, {` 1 `, `1`}, {`null`, `null`},
		{`{"b":{"d":1,"c":[{"z":1,"y":2}]},"a":[]}`, `{"a":[],"b":{"c":[{"y":2,"z":1}],"d":1}}`},
		{`{"ab":1,"a":2,"":3,"a\u0000":4,"a!":5}`, `{"":3,"a":2,"a\u0000":4,"a!":5,"ab":1}`},
		{`{"\ud83d":1,"\ue000":2,"\ud83d\ude00":3,"\ude00":4}`, `{"\ud83d":1,"😀":3,"\ude00":4,"` + "\ue000" + `":2}`},
		{`"\ud83d\ud83d\ude00\uD83D\u0041\ude00"`, `"\ud83d😀\ud83dA\ude00"`},
		{`"\b\f\n\r\t\u0008\u001F\u007f\/"`, `"\b\f\n\r\t\b\u001f` + "\u007f" + `/"`},
	} {
		got, err := CanonicalJSON([]byte(c.raw))
		if err != nil || string(got) != c.want {
			t.Errorf("%s\ngot  %s %v\nwant %s", c.raw, got, err, c.want)
		}
	}
	for raw, want := range map[string]string{
		`{"a":1,"b":2,"a":1}`:  `an object has two members named "a"`,
		`{"a":1,"\u0061":1}`:   `an object has two members named "a"`,
		`[{"é":1,"\u00e9":1}]`: `an object has two members named "é"`,
		`[1,]`:                 "not valid JSON",
		"\ufeff{}":             "not valid JSON",
		"\"\xc3\"":             "not valid UTF-8",
	} {
		if got, err := CanonicalJSON([]byte(raw)); err == nil || err.Error() != want {
			t.Errorf("%s: %s %v, want %s", raw, got, err, want)
		}
	}
}

func TestCanonicalNumber(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0", "0"}, {"-0", "-0"}, {"-0.0e5", "-0"}, {"0e99999999999999999999", "0"}, {"1.0", "1"}, {"-1.50", "-1.5"},
		{"1e2", "100"}, {"100E-2", "1"}, {"0.1", "0.1"}, {"1e21", "1e+21"}, {"1e20", "100000000000000000000"}, {"123456789012345678e3", "123456789012345678e3"},
		{"0.000001", "0.000001"}, {"0.0000001", "1e-7"}, {"1E-10", "1e-10"}, {"1.25e+300", "1.25e+300"},
		{"9007199254740992", "9007199254740992"}, {"9007199254740993", "9007199254740993"}, {"-9007199254740993", "-9007199254740993"},
		{"9007199254740993.0", "9007199254740993.0"}, {"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"},
		{"295147905179352830000", "295147905179352830000"}, {"295147905179352825856", "295147905179352825856"},
		{"1e400", "1e400"}, {"-1E+400", "-1E+400"}, {"1e-400", "1e-400"}, {"1e99999999999999999999", "1e99999999999999999999"},
		{"123456789012345", "123456789012345"}, {"12345678901234567890", "12345678901234567890"},
	} {
		if got := string(appendCanonicalNumber(nil, []byte(c.text))); got != c.want {
			t.Errorf("%s becomes %s, want %s", c.text, got, c.want)
		}
	}
	// RFC 8785, appendix B, except for -0, which becomes 0 in the RFC.
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0", 0x8000000000000000: "-0", 0x0000000000000001: "5e-324", 0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308", 0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992", 0xc340000000000000: "-9007199254740992", 0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22", 0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000", 0x444b1ae4d6e2ef4f: "999999999999999900000", 0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332", 0x41b3de4355555554: "333333333.33333325", 0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334", 0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		f := math.Float64frombits(bits)
		if got := string(appendECMAScriptNumber(nil, f)); got != want {
			t.Errorf("%x becomes %s, want %s", bits, got, want)
		}
		if got := string(appendCanonicalNumber(nil, strconv.AppendFloat(nil, f, 'e', -1, 64))); got != want {
			t.Errorf("%x in another spelling becomes %s, want %s", bits, got, want)
		}
	}
}

// value generates any JSON value. Numbers are strings.
func value(depth int) *rapid.Generator[any] {
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("ab\"\\/\n\x00\u007f\ue000\uffff😀"))))
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?`), func(s string) any { return json.Number(s) }),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(text, value(depth-1), 0, 5), func(m map[string]any) any { return m }))
	}
	return rapid.OneOf(kinds...)
}

// same reports whether two trees are equal. It compares numbers by their exact value.
func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if v, ok := y[k]; !ok || !same(x[k], v) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	case json.Number:
		y, ok := b.(json.Number)
		if !ok {
			return false
		}
		p, _ := new(big.Rat).SetString(string(x))
		q, _ := new(big.Rat).SetString(string(y))
		return p.Cmp(q) == 0
	}
	return reflect.DeepEqual(a, b)
}

// TestCanonicalProperties checks that the canonical form means the same as the text, is its own canonical form, and is
// the same for every spelling.
func TestCanonicalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := value(3).Draw(t, "tree")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		text := scramble(rng, tree)
		got, err := CanonicalJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		d := json.NewDecoder(bytes.NewReader(got))
		d.UseNumber()
		var back any
		if err := d.Decode(&back); err != nil || !same(tree, back) {
			t.Fatalf("%s\nbecomes %s (%v)", text, got, err)
		}
		again, err := CanonicalJSON(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%s\nis not canonical: %s (%v)", got, again, err)
		}
		other := scramble(rng, tree)
		if o, err := CanonicalJSON([]byte(other)); err != nil || !bytes.Equal(o, got) {
			t.Fatalf("%s\nand %s\nbecome %s\nand %s (%v)", text, other, got, o, err)
		}
	})
}

// TestCanonicalNumberProperties checks that numbers near the limits of float64 have different canonical forms only if
// they are different.
func TestCanonicalNumberProperties(t *testing.T) {
	number := rapid.OneOf(
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?([eE][+-]?[0-9])?`),
		rapid.StringMatching(`90071992547409[0-9]{2}(\.[05])?`),
		rapid.StringMatching(`0\.[1-9]00000000000000[0-9]{1,4}`),
		rapid.Map(rapid.Float64(), func(f float64) string {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				f = 0
			}
			return strconv.FormatFloat(f, 'g', -1, 64)
		}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, y := appendCanonicalNumber(nil, []byte(a)), appendCanonicalNumber(nil, []byte(b))
		equal := same(json.Number(a), json.Number(b))
		if bytes.Equal(x, y) && !equal {
			t.Fatalf("%s and %s both become %s", a, b, x)
		}
		if !same(json.Number(a), json.Number(x)) || !json.Valid(x) {
			t.Fatalf("%s becomes %s", a, x)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(` {"b":[1.50,"\ud83d\u0041\/",{}],"a":{"\ue000":-0,"😀":9007199254740993}} `))
	for _, raw := range []string{`"\\\""`, `{"a":1,"a":2}`, strings.Repeat("[", 129) + strings.Repeat("]", 129)} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := CanonicalJSON(raw)
		_, _ = ParseDefinition("s", raw)
		ParseHints(raw)
		if err != nil {
			return
		}
		var a, b any
		if json.Unmarshal(raw, &a) != nil { // the text contains a number that float64 cannot represent
			return
		}
		if err := json.Unmarshal(got, &b); err != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%q becomes %q (%v)", raw, got, err)
		}
		if again, err := CanonicalJSON(got); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q becomes %q (%v)", got, again, err)
		}
	})
}
