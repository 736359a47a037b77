package schema

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// bomb is a schema, with arguments, that is made to cost.
type bomb struct{ name, schema, args string }

func bombs() []bomb {
	rep := strings.Repeat
	// Every definition applies the next one twice: 2^n.
	doubling := func(keyword string, n int, leaf string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
		for i := range n {
			fmt.Fprintf(&b, `"a%d":{%q:[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, keyword, i+1, i+1)
		}
		fmt.Fprintf(&b, `"a%d":%s}}`, n, leaf)
		return b.String()
	}
	list := func(n int, element string) string { return rep(element+",", n-1) + element }
	wide := func(n int, member string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `%q:%s,`, fmt.Sprint("p", i), member)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	return []bomb{
		{"anyOf that fails, doubled 30 times", doubling("anyOf", 30, `{"type":"null"}`), `{}`},
		{"allOf that fits, doubled 30 times", doubling("allOf", 30, `{"type":"object"}`), `{}`},
		{"oneOf, doubled 30 times", doubling("oneOf", 30, `{"type":"object"}`), `{}`},
		{"anyOf, doubled 800 times", doubling("anyOf", 800, `false`), `{}`},
		{"inside not", `{"not":{"$id":"http://x/y",` + doubling("anyOf", 30, `{"type":"null"}`)[1:] + `}`, `{}`},
		{"doubled and unevaluated", `{"unevaluatedProperties":false,` + doubling("anyOf", 30, `{"properties":{"a":true}}`)[1:], `{"a":1}`},
		{"recursion on every level of the arguments", `{"$id":"x","anyOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}],"type":"array"}`, rep("[", 60) + "1" + rep("]", 60)},
		{"dynamic recursion", `{"$dynamicAnchor":"n","anyOf":[{"items":{"$dynamicRef":"#n"}},{"items":{"$dynamicRef":"#n"}}],"type":"array"}`, rep("[", 60) + "1" + rep("]", 60)},
		{"dynamic reference to itself", `{"$id":"http://x/a","$ref":"b#/$defs/c","$defs":{"b":{"$id":"b","$dynamicAnchor":"n","$defs":{"c":{"$dynamicRef":"#n"}}},"o":{"$dynamicAnchor":"n","$ref":"b#/$defs/c"}}}`, `{}`},
		{"reference to itself", `{"$ref":"#"}`, `{}`},
		{"references in a ring", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{}`},
		{"a long chain", doubling("allOf", 1200, `true`), `{}`},
		{"deep", rep(`{"properties":{"a":`, 5000) + `{}` + rep("}}", 5000), `{}`},
		{"wide", `{"properties":{` + wide(5000, `{}`) + `}}`, `{}`},
		{"as wide as it may be", `{"properties":{` + wide(4900, `true`) + `},"required":[` + list(50, `"zz"`) + `]}`, `{` + wide(20_000, `1`) + `}`},
		{"everything is required", `{"required":[` + list(4900, `"q"`) + `]}`, `{` + wide(20_000, `1`) + `}`},
		{"references over references", `{"$defs":{` + wide(1600, `true`) + `},"allOf":[` + list(1600, `{"$ref":"#/$defs/p1599"}`) + `]}`, `{}`},
		{"long pointers", `{"$defs":{"a":{"a":{"a":{"a":{"a":true}}}}},"allOf":[` + list(2000, `{"$ref":"#/$defs/a/a/a/a/a"}`) + `]}`, `{}`},
		{"identifiers", `{"allOf":[` + list(2400, `{"$id":"http://example.com/a"}`) + `]}`, `{}`},
		{"references out", `{"allOf":[` + list(2400, `{"$ref":"http://10.0.0.1/x"}`) + `]}`, `{}`},
		{"pattern with nested repetition", `{"pattern":"^(((((a+)+)+)+)+)+$"}`, `"` + rep("a", 20_000) + `!"`},
		{"pattern with counted repetition", `{"pattern":"((((x{30}){30}){30}){30})"}`, `"` + rep("x", 1000) + `"`},
		{"pattern as large as it may be", `{"pattern":"^(a|b|c|[a-z]{900}|(xy){400})*$"}`, `"` + rep("abcxy", 20_000) + `!"`},
		{"many counted patterns", `{"patternProperties":{` + strings.ReplaceAll(wide(300, `true`), `":`, `[a-y]{900}":`) + `}}`, `{` + wide(100, `1`) + `}`},
		{"classes", `{"pattern":"` + rep(`\\PL`, 300) + `"}`, `"` + rep("1", 1000) + `"`},
		{"folded classes", `{"pattern":"(?i)` + rep(`[\\PL\\pN]`, 110) + `"}`, `"` + rep("1", 1000) + `"`},
		{"many patterns on many members", `{"patternProperties":{` + strings.ReplaceAll(wide(400, `true`), `":`, `.*z$":`) + `}}`, `{` + wide(20_000, `1`) + `}`},
		{"unique elements", `{"uniqueItems":true}`, `[` + list(100_000, `1e1`) + `]`},
		{"unique elements that are large", `{"uniqueItems":true}`, `[` + list(300, `{"a":"`+rep("x", 10_000)+`","b":1}`) + `]`},
		{"a huge exponent", `{"multipleOf":1e-999999999,"maximum":1e999999999,"minimum":-1e999999999}`, `1e999999998`},
		{"many huge exponents", `{"items":{"multipleOf":3e-1000000}}`, `[` + list(30_000, `1e1000000`) + `]`},
		{"long numbers", `{"items":{"const":` + rep("9", 60_000) + `}}`, `[` + list(200, rep("9", 60_000)) + `]`},
		{"long strings, looked at often", `{"allOf":[` + list(1500, `{"minLength":1000000}`) + `]}`, `"` + rep("é", 400_000) + `"`},
		{"a wide enum of objects", `{"items":{"enum":[` + list(1200, `{"a":1,"b":[2]}`) + `]}}`, `[` + list(5000, `{"b":[3],"a":1}`) + `]`},
		{"contains in contains", `{"contains":{"contains":{"contains":{"const":1}}}}`, `[` + list(60, `[`+list(60, `[`+list(40, `2`)+`]`)+`]`) + `]`},
	}
}

// No schema costs more than a bounded time and memory, at compiling and at
// validating, whatever the arguments.
func TestBombs(t *testing.T) {
	const most, memory = slowdown * 50 * time.Millisecond, slowdown * 16 << 20
	for _, b := range bombs() {
		t.Run(b.name, func(t *testing.T) {
			took, used, err := detonate(b)
			for range 4 { // a busy machine is no bomb
				if took > most {
					took, used, err = detonate(b)
				}
			}
			t.Logf("%v, %d KiB, %v", took, used>>10, err)
			if took > most {
				t.Errorf("took %v, more than %v", took, most)
			}
			if used > memory {
				t.Errorf("used %d bytes, more than %d", used, memory)
			}
		})
	}
}

func detonate(b bomb) (took time.Duration, used uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	s := Compile(json.RawMessage(b.schema))
	_, err = s.Check(json.RawMessage(b.args))
	took = time.Since(start)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc, err
}
