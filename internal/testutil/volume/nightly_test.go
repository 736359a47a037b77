package volume

import (
	"fmt"
	"testing"
)

type skipRecorder struct{ why string }

func (*skipRecorder) Helper()                            {}
func (s *skipRecorder) Skipf(format string, args ...any) { s.why = fmt.Sprintf(format, args...) }

func TestNightlyRunsItsTopics(t *testing.T) {
	for _, c := range []struct {
		set  string
		runs bool
	}{{"", false}, {"peers", true}, {"clients", false}, {"clients,peers", true}, {"peer", false}, {"all", true}} {
		t.Setenv(nightlyVar, c.set)
		var test skipRecorder
		SkipUnlessNightly(&test, Peers)
		if runs := test.why == ""; runs != c.runs {
			t.Errorf("%q: skipped with %q", c.set, test.why)
		}
		if want := "runs nightly: set MCPPROXY_TEST_NIGHTLY=peers, or all"; !c.runs && test.why != want {
			t.Errorf("%q, want %q", test.why, want)
		}
	}
}
