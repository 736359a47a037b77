package result

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// hostile returns expressions that would run forever or use all memory without limits.
func hostile(rnd *rand.Rand) (all []string) {
	times := func(n int, s, between string) string { return strings.Repeat(s+between, n-1) + s }
	patterns := func(n int) string { // n different patterns
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`test("%s(a|b|.){%d}$")?`, strings.Repeat("(.?){300}", i%20), i)
		}
		return strings.Join(all, ", ")
	}
	for len(all) < 1000 {
		n := 2 + rnd.IntN(60)
		seed := []string{".", "[.[]]", "[.[] | tostring]", ".[0]", "[1,2,3]", `"abc"`, "{a: .}"}[rnd.IntN(7)]
		all = append(all,
			seed+" | "+times(n, "[., .]", " | "),
			seed+" | "+times(n, "(., .)", " | "),
			seed+" | "+times(n, ". + .", " | "),
			seed+" | "+times(n, "[.[], .[]?]", " | "),
			seed+" | "+times(n, `"\(.)\(.)"`, " | "),
			seed+" | "+times(n, "tojson", " | "),
			seed+" | "+times(n, "{a: ., b: .}", " | "),
			"["+times(1+n%8, ".[]", " as $x | ")+" as $y | $y]",
			"[{"+times(1+n%10, fmt.Sprintf("k%d: .[]", n), ", ")+"}]",
			times(1+n%9, ".[]", " + "),
			"map(. as $x | $x) | "+times(n, "map([., .])", " | ")+" | flatten",
			". as $all | "+times(1+n%6, "map($all)", " | "),
			"[.[] | test(\""+strings.Repeat("(a{0,30}){1,30}", 1+n%30)+"$\")?]",
			"[.[] | tostring | test(\""+strings.Repeat("(.*)*", n)+"b$\")]",
			"[.[] | tostring | "+patterns(n)+"]",
			"sort_by("+times(1+n%5, "[., .]", " | ")+") | group_by(.) | unique",
			". as $x | [.[] | . as $y | $x | contains([$y])]",
			"[.[] | [.]] | "+times(n, "add | [.[]?, .[]?] | [[.]]", " | "),
			times(n, "with_entries({key: (.key + .key | tostring), value: [.value, .value]})?", " | "),
			"join(\""+strings.Repeat("x", n*10)+"\") | "+times(n%5+1, "split(\"x\") | join(\"xx\")", " | "),
			"[limit(1000000000; .[], .[], .[])] | "+times(n, "[.[], .[]]", " | "),
			"any(.[]; . as $a | any(.[]?; . == $a)) , [paths]?",
			"del("+times(1+n, ".[]", ", ")+") | reverse | "+times(n, "reverse", " | "),
			". - . - "+times(n, ".", " - "),
		)
	}
	return all[:1000]
}

func hostileInputs() map[string]string {
	return map[string]string{
		"100,000 numbers": "[" + strings.Repeat("1234,", 99_999) + "1]", "a million brackets": strings.Repeat("[", 900) + strings.Repeat("[],", 300_000) + "[]" + strings.Repeat("]", 900),
		"a long text": `["` + strings.Repeat("a", 4<<20) + `"]`, "objects": "[" + strings.Repeat(`{"a":{"b":[1,2,{"c":"d"}]},"e":"f"},`, 20_000) + "{}]", "escapes": `"` + strings.Repeat(`\u0041\n`, 300_000) + `"`,
	}
}

var everyHostile = flag.Bool("hostile", false, "try all hostile expressions, which takes minutes")

// TestHostileExpressionsEnd checks that hostile expressions stay within the limits on reading and output.
func TestHostileExpressionsEnd(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	all, worst := hostile(rnd), uint64(0)
	var names, refused, bounded int
	inputs := hostileInputs()
	for _, text := range all {
		e, err := CompileExpression(text)
		if err != nil {
			refused++
			continue
		}
		for name, input := range inputs {
			if names++; !*everyHostile && names%97 != 0 {
				continue
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := e.Apply([]byte(input))
			runtime.ReadMemStats(&after)
			used := after.TotalAlloc - before.TotalAlloc - uint64(len(input))
			if worst = max(worst, used); used > 64<<20 {
				t.Errorf("%s applied to %s used %d MB", text, name, used>>20)
			}
			if err == ErrLimit {
				bounded++
			}
		}
	}
	t.Logf("%d expressions, %d rejected, %d reached a limit, at most %d MB allocated in total", len(all), refused, bounded, worst>>20)
	if bounded < 20 {
		t.Errorf("only %d reached a limit: the expressions are not hostile", bounded)
	}
}

// BenchmarkHostile measures how long hostile expressions take.
func BenchmarkHostile(b *testing.B) {
	all := hostile(rand.New(rand.NewPCG(1, 1)))
	var took []time.Duration
	for b.Loop() {
		for _, text := range all {
			e, err := CompileExpression(text)
			if err != nil {
				continue
			}
			for _, input := range hostileInputs() {
				began := time.Now()
				_, _ = e.Apply([]byte(input))
				took = append(took, time.Since(began))
			}
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "most-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
}

func FuzzApply(f *testing.F) {
	for _, text := range []string{".a[1:] | map({b, c: .d?}) // \"x\\(.)\"", "if . then [.[]] elif 1 then 2 end", `with_entries(.) | del(.a[].b, ."c")`, "1 as $x | limit(2; .[] | $x + 1 == -3)"} {
		f.Add(text, document)
	}
	f.Fuzz(func(t *testing.T, text, input string) {
		e, err := CompileExpression(text)
		if err != nil || rawjsonChecks(input) != nil {
			return
		}
		values, err := e.Apply([]byte(input))
		if err != nil {
			return
		}
		for _, v := range values {
			if err := rawjsonChecks(string(v)); err != nil && len(v) < 1<<20 {
				t.Fatalf("%s applied to %s returned %s: %v", text, input, v, err)
			}
		}
	})
}

func rawjsonChecks(text string) error {
	return wirejson.Check([]byte(text), wirejson.Limits{Bytes: maxInput, Depth: 2 * wirejson.RelayDepth})
}
