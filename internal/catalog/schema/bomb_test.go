package schema

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/testutil/cputime"
	"mcpproxy/internal/testutil/volume"
)

// bomb is a schema with arguments, built to make compilation or validation expensive.
type bomb struct{ name, schema, args string }

func bombs() []bomb {
	rep := strings.Repeat
	// Every definition applies the next one twice: 2^n applications.
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
		{"dynamic recursion into what nothing else leads to", `{"$ref":"list","$defs":{"mine":{"$dynamicAnchor":"e","type":"array","anyOf":[{"items":{"$dynamicRef":"list#e"}},{"items":{"$dynamicRef":"list#e"}}]},"list":{"$id":"list","items":{"$dynamicRef":"#e"},"$defs":{"any":{"$dynamicAnchor":"e"}}}}}`, rep("[", 60) + "1" + rep("]", 60)},
		{"recursion as draft 2019-09 has it", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"anyOf":[{"items":{"$recursiveRef":"#"}},{"items":{"$recursiveRef":"#"}}],"type":"array"}`, rep("[", 60) + "1" + rep("]", 60)},
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
		{"constants of one type, many", `{"items":{"enum":[` + numbers(1000) + `]}}`, `[` + list(20_000, `-1`) + `]`},
		{"words, many", `{"items":{"enum":[` + list(2000, `"abcdefgh"`) + `,"x"]}}`, `[` + list(20_000, `"abcdefgi"`) + `]`},
		{"doubled where only yes or no matters", `{"not":{"properties":{"a":{"$ref":"#/not"}},"patternProperties":{"a":{"$ref":"#/not"},"b*":{"$ref":"#/not"}},"required":["a"]}}`, rep(`{"a":`, 60) + `{}` + rep("}", 60)},
		{"doubled in draft 07", `{"$schema":"http://json-schema.org/draft-07/schema#",` + strings.ReplaceAll(doubling("allOf", 25, `{"type":"null"}`), "$defs", "definitions")[1:], `{}`},
		{"all that is wrong", `{"items":{"allOf":[` + list(20, `{"type":"null"}`) + `]}}`, `[` + list(4000, `1`) + `]`},
		{"wrong in many ways", `{"items":{"required":["` + names(900) + `"]}}`, `[` + list(4000, `{}`) + `]`},
		{"what is not allowed", `{"additionalProperties":false}`, `{` + wide(20_000, `1`) + `}`},
		{"long names that are not allowed", `{"additionalProperties":false}`, `{"` + rep("x", 2_000_000) + `":1}`},
		{"names", `{"propertyNames":{"enum":["` + names(900) + `"]}}`, `{` + wide(20_000, `1`) + `}`},
		{"what nobody looked at", `{"allOf":[` + list(300, `{"minProperties":1}`) + `],"unevaluatedProperties":false}`, `{` + wide(5000, `1`) + `}`},
		{"a long name around many", `{"properties":{"` + rep("x", 60_000) + `":{"properties":{` + wide(800, `true`) + `}}}}`, `{}`},
		{"long identifiers", `{"$id":"http://x/` + rep("y", 60_000) + `","properties":{` + wide(500, `{"$ref":"#/properties/p1"}`) + `}}`, `{}`},
		{"references to unexpected places", `{"x":` + rep(`{"not":`, 25) + `{"properties":{` + wide(200, `true`) + `}}` + rep("}", 25) + `,"allOf":[` + deeper(25) + `]}`, `{}`},
		{"definitions where draft 07 has none", `{"$schema":"http://json-schema.org/draft-07/schema#","$defs":{` + wide(300, `{"type":"string"}`) + `},"properties":{` + references(300) + `}}`, `{}`},
		{"the metaschema", `{"items":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}`, `[` + list(3000, `{"properties":{"a":{"minimum":1}}}`) + `]`},
		{"the metaschema, on itself", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, rep(`{"not":`, 60) + `{}` + rep("}", 60)},
		{"lists with the same hash", `{"uniqueItems":true}`, `[` + twins(400) + `]`},
		{"constants with the same hash", `{"$schema":"http://json-schema.org/draft-06/schema#","enum":[` + twins(90) + `]}`, `{}`},
		{"fractions", `{"items":{"type":"integer","multipleOf":1e-340}}`, `[` + list(20_000, `1e340`) + `]`},
		{"long fractions", `{"items":{"multipleOf":3.` + rep("7", 340) + `}}`, `[` + list(10_000, `0.`+rep("3", 340)) + `]`},
		{"as many types as may be", `{"properties":{` + wide(550, `{"type":"string"}`) + `}}`, `{` + wide(550, `"x"`) + `}`},
		{"as many keywords as may be", `{"properties":{` + wide(400, `{"type":"string","description":"x","minLength":1,"maxLength":3}`) + `}}`, `{}`},
		{"as many patterns as may be", `{"properties":{` + wide(300, `{"pattern":"^[a-z]{3,30}$"}`) + `}}`, `{}`},
		{"as large an argument as may be", `{"properties":{"p1":{"maxLength":10}}}`, `{"p1":"` + rep(`\u00e9`, 350_000) + `"}`},
		{"as many arguments as may be", `{"items":{"type":"number"}}`, `[` + list(16_000, `1`) + `]`},
		{"contains in contains", `{"contains":{"contains":{"contains":{"const":1}}}}`, `[` + list(60, `[`+list(60, `[`+list(40, `2`)+`]`)+`]`) + `]`},
	}
}

func join(n int, element func(i int) string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = element(i)
	}
	return strings.Join(out, ",")
}

func numbers(n int) string { return join(n, strconv.Itoa) }

// names returns n names without the outer quotes.
func names(n int) string {
	return strings.Trim(join(n, func(i int) string { return fmt.Sprintf(`"name%d"`, i) }), `"`)
}

// references returns n members, each with a reference to a definition.
func references(n int) string {
	return join(n, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/$defs/p%d"}`, i, i) })
}

// deeper returns n references into x, the deepest first.
func deeper(n int) string {
	return join(n, func(i int) string { return `{"$ref":"#/x` + strings.Repeat("/not", n-i) + `"}` })
}

// twins returns n different lists that collide in the library's hash: they are equal when their strings are joined by
// the byte that the library writes before a string.
func twins(n int) string {
	const letter = `a\u0004`
	return join(n, func(i int) string {
		return `["` + strings.Repeat(letter, i) + `a","` + strings.Repeat(letter, n-i) + `a"]`
	})
}

// TestBombs checks that compiling and validating take a bounded time and memory for any schema and arguments.
func TestBombs(t *testing.T) {
	volume.SkipUnderRace(t)
	// Five times the time of the slowest schema on an idle machine. A bomb would take seconds, a busy machine does not.
	const most, memory = volume.Slowdown * 250 * time.Millisecond, volume.Slowdown * 32 << 20
	for _, b := range bombs() {
		t.Run(b.name, func(t *testing.T) {
			took, used := time.Hour, uint64(0)
			for try := 0; try < 5 && took > most; try++ { // repeats, because the machine may be busy
				var err error
				took, used, err = detonate(b)
				t.Logf("%v, %d KiB, %v", took, used>>10, err)
			}
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
	start := cputime.Process()
	s := Compile(json.RawMessage(b.schema))
	_, err = s.CheckArguments(json.RawMessage(b.args))
	took = cputime.Process() - start
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc, err
}

func FuzzSchema(f *testing.F) {
	for _, b := range bombs() {
		if len(b.schema) < 2000 && len(b.args) < 2000 {
			f.Add([]byte(b.schema), []byte(b.args))
		}
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		s := Compile(schema)
		v, err := s.CheckArguments(args)
		if s.BrokenError() != nil && err == nil || err != nil && v != nil || len(v) > maxReported {
			t.Fatalf("broken %v, violations %v, undecided %v", s.BrokenError(), v, err)
		}
		for _, msg := range []error{s.BrokenError(), err} {
			if msg != nil && strings.Contains(msg.Error(), "failed: ") {
				t.Fatalf("a panic: %v", msg)
			}
		}
		if err == nil && s.root != nil {
			checkSome(t, s, args)
		}
		again, _ := Compile(schema).CheckArguments(args)
		if !slices.Equal(v, again) {
			t.Fatalf("got %v, then %v for the same input", v, again)
		}
	})
}
