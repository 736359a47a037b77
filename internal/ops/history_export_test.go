package ops

import (
	"slices"
	"testing"

	"mcpproxy/internal/store/activity"
)

// A row of the table says how many identical refusals its record counts.
func TestCSVCountsRefusals(t *testing.T) {
	at := slices.Index(csvColumns(false), "repeated")
	for repeated, want := range map[int64]string{0: "1", 1071: "1071"} {
		if got := csvRow(&activity.Record{Repeated: repeated}, false); at < 0 || len(got) != len(csvColumns(false)) || got[at] != want {
			t.Errorf("%d: %q", repeated, got)
		}
	}
}
