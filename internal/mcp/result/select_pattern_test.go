package result

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/testutil/volume"
)

// TestLongTextsMatch checks that a long text, which is matched with limits, has the same result as a short one.
func TestLongTextsMatch(t *testing.T) {
	filler := strings.Repeat("é line of nothing\\n", volume.FullOrQuick(20_000, 6_000))
	for _, expr := range []string{"needle", "(?i)NEEDLE$", `\\bneedle\\b`, "^needle", "need.e.*z", "(n|e|d){3}l", "(?m)^needle$", "(?s)a.*needle"} {
		for _, text := range []string{filler, "needle\\n" + filler, filler + "needle", filler + "needle\\nz", "a" + filler + "needles"} {
			r := evaluation{begun: time.Now().Add(time.Hour)} // enough time, however slow the machine is
			got, err := r.evalRegexpTest([]byte(`"`+text+`"`), []byte(`"`+expr+`"`), nil)
			plain := strings.NewReplacer(`\n`, "\n", `\\`, `\`)
			if want := regexp.MustCompile(plain.Replace(expr)).MatchString(plain.Replace(text)); err != nil || string(got) != string(boolJSON(want)) {
				t.Errorf("%s: %s, %v, want %v", expr, got, err, want)
			}
		}
	}
}

// TestMatchingIsBounded checks that a match that exceeds its limit is an error, because package regexp cannot be
// interrupted.
func TestMatchingIsBounded(t *testing.T) {
	r := evaluation{begun: time.Now().Add(-maxTime)}
	if _, err := r.compilePattern([]byte(`"(.*)*(.*)*b$"`), nil); err != ErrLimit {
		t.Errorf("an evaluation over the time limit continues: %v", err)
	}
	r.begun = time.Now()
	p, err := r.compilePattern([]byte(`"(.*)*(.*)*b$"`), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.begun = time.Now().Add(-maxTime)
	if found, err := r.matchPattern(p, strings.Repeat("a", 4<<20)+"b"); found || err != ErrLimit {
		t.Errorf("%v, %v", found, err)
	}
}
