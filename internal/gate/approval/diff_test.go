package approval

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/testutil/volume"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name, was, is string
		want          []Difference
	}{
		{"the same but for order and space", `{"name":"a","x":1}`, ` {"x" : 1.0, "name":"\u0061"}`, nil},
		{"words", `{"description":"Read a small file."}`, `{"description":"Read a large file!"}`, []Difference{{
			Path: "/description", Kind: Replaced, Old: json.RawMessage(`"Read a small file."`), New: json.RawMessage(`"Read a large file!"`),
			Words: []Piece{{Same, "Read a "}, {Removed, "small"}, {Added, "large"}, {Same, " file"}, {Removed, "."}, {Added, "!"}}}}},
		{"a hint turned round", `{"annotations":{"destructiveHint":true}}`, `{"annotations":{"destructiveHint":false}}`, []Difference{{
			Path: "/annotations/destructiveHint", Kind: Replaced, Old: json.RawMessage(`true`), New: json.RawMessage(`false`), Hint: true, Loosened: true}}},
		{"hints gone with their object", `{"annotations":{"destructiveHint":true,"title":"T"}}`, `{}`, []Difference{
			{Path: "/annotations/destructiveHint", Kind: Removed, Old: json.RawMessage(`true`), Hint: true, Loosened: true},
			{Path: "/annotations/title", Kind: Removed, Old: json.RawMessage(`"T"`)}}},
		{"a hint made stricter", `{"annotations":{"readOnlyHint":true}}`, `{"annotations":{"readOnlyHint":false}}`, []Difference{{
			Path: "/annotations/readOnlyHint", Kind: Replaced, Old: json.RawMessage(`true`), New: json.RawMessage(`false`), Hint: true}}},
		{"in the schema", `{"inputSchema":{"properties":{"a/b":{"type":"string"}},"required":["a/b","c"]}}`, `{"inputSchema":{"properties":{"a/b":{"type":"number"}},"required":["c","d"]}}`, []Difference{
			{Path: "/inputSchema/properties/a~1b/type", Kind: Replaced, Old: json.RawMessage(`"string"`), New: json.RawMessage(`"number"`)},
			{Path: "/inputSchema/required/0", Kind: Removed, Old: json.RawMessage(`"a/b"`)},
			{Path: "/inputSchema/required/1", Kind: Added, New: json.RawMessage(`"d"`)}}},
		{"another type", `{"x":[1]}`, `{"x":{"0":1}}`, []Difference{{Path: "/x", Kind: Replaced, Old: json.RawMessage(`[1]`), New: json.RawMessage(`{"0":1}`)}}},
		{"in an element", `{"x":[{"a":1},2]}`, `{"x":[{"a":2},2]}`, []Difference{{Path: "/x/0/a", Kind: Replaced, Old: json.RawMessage(`1`), New: json.RawMessage(`2`)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, complete, err := Diff(json.RawMessage(c.was), json.RawMessage(c.is))
			if d := cmp.Diff(c.want, got); d != "" || !complete || err != nil {
				t.Errorf("complete %v, error %v (-want +got)\n%s", complete, err, d)
			}
		})
	}
	if _, _, err := Diff(json.RawMessage(`{`), json.RawMessage(`{}`)); err == nil {
		t.Error("invalid JSON was compared")
	}
}

func TestDiffIsBounded(t *testing.T) {
	object := func(n int, value string) json.RawMessage {
		var b strings.Builder
		b.WriteString(`{"description":"` + strings.Repeat(value+" ", 15_000) + `"`)
		for i := range n {
			fmt.Fprintf(&b, `,"m%d":%q`, i, value)
		}
		return json.RawMessage(b.String() + "}")
	}
	got, complete, err := Diff(object(maxDifferences+1, "a"), object(maxDifferences+1, "b"))
	if err != nil || complete || len(got) != maxDifferences || got[0].Words != nil {
		t.Errorf("%d differences, complete %v, error %v", len(got), complete, err)
	}
}

// TestWordsGiveBackBothTexts checks that, for any comparison, the unchanged and removed words form the old text, and
// the unchanged and added words form the new one.
func TestWordsGiveBackBothTexts(t *testing.T) {
	seed := volume.Seed(t, 1)
	r := rand.New(rand.NewPCG(seed, 0))
	text := func() string {
		var b strings.Builder
		for range r.IntN(40) {
			b.WriteString([]string{"a", "b", "word", " ", "\n", ".", "é", "日本", "\u200b", "\xff"}[r.IntN(10)])
		}
		return b.String()
	}
	for range volume.FullOrQuick(2_000, 500) {
		old, now := text(), text()
		pieces := diffWords(old, now)
		if pieces == nil {
			continue
		}
		var a, b strings.Builder
		for _, p := range pieces {
			if p.Kind != Added {
				a.WriteString(p.Text)
			}
			if p.Kind != Removed {
				b.WriteString(p.Text)
			}
		}
		if a.String() != old || b.String() != now {
			t.Fatalf("seed %d: the pieces of %q and %q form %q and %q", seed, old, now, a.String(), b.String())
		}
	}
}

func TestAlignFindsTheShortestWay(t *testing.T) {
	seed := volume.Seed(t, 1)
	r := rand.New(rand.NewPCG(seed, 0))
	for range volume.FullOrQuick(2_000, 500) {
		a, b := make([]int, r.IntN(12)), make([]int, r.IntN(12))
		for i := range a {
			a[i] = r.IntN(3)
		}
		for i := range b {
			b[i] = r.IntN(3)
		}
		edits, i, j := 0, 0, 0
		for _, run := range alignSequences(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }) {
			edits += run.old + run.now
			i, j = i+run.old, j+run.now
			for k := range run.same {
				if a[i+k] != b[j+k] {
					t.Fatalf("seed %d: %v and %v are not the same at %d, %d", seed, a, b, i+k, j+k)
				}
			}
			i, j = i+run.same, j+run.same
		}
		if want := distance(a, b); edits != want || i != len(a) || j != len(b) {
			t.Fatalf("seed %d: %v to %v took %d edits to %d, %d; want %d", seed, a, b, edits, i, j, want)
		}
	}
}

// distance returns the number of insertions and deletions, computed with the textbook algorithm.
func distance(a, b []int) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			next := min(row[j], row[j+1]) + 1
			if a[i] == b[j] {
				next = diagonal
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
