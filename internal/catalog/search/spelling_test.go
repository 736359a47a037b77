package search

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	among := []string{"github:create_issue", "github:create_pull_request", "github:delete_repo", "gitlab:create_issue", "fs:read_file", "fs:read_files", "x"}
	tests := []struct {
		name string
		want []string
	}{
		{"github:create_isue", []string{"github:create_issue", "gitlab:create_issue"}},
		{"github:createissue", []string{"github:create_issue", "gitlab:create_issue"}},
		{"GitHub:Create-Issue", []string{"github:create_issue", "gitlab:create_issue"}},
		{"fs:read_flie", []string{"fs:read_file", "fs:read_files"}},
		{"create_issue", []string{"github:create_issue", "gitlab:create_issue"}},
		{"nothing_like_it_at_all", []string{}},
		{"", []string{"x"}},
	}
	for _, tt := range tests {
		if got := NearestNames(tt.name, among, 3); !cmp.Equal(got, tt.want) {
			t.Errorf("Nearest(%q) = %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := NearestNames("fs:read_file", among, 1); len(got) != 1 {
		t.Errorf("n = 1 gave %v", got)
	}
}

// distance agrees with a slow, obvious implementation.
func TestDistance(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,9}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, limit := word.Draw(t, "a"), word.Draw(t, "b"), rapid.IntRange(0, 4).Draw(t, "limit")
		want := min(slowDistance(a, b), limit+1)
		if got := min(editDistance(a, b, limit), limit+1); got != want {
			t.Fatalf("distance(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
		}
	})
}

func slowDistance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

func BenchmarkNearest10000(b *testing.B) {
	var among []string
	for _, d := range scaleTools(b, 10_000) {
		among = append(among, d.ID.String())
	}
	b.ReportAllocs()
	for b.Loop() {
		NearestNames("github:create_isue", among, 3)
	}
}
