package classify

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/volume"
)

// TestSharedDialectTokens checks that a dialect that reuses the tokens of another one would have read the same tokens
// itself.
func TestSharedDialectTokens(t *testing.T) {
	pieces := []string{
		"select", " ", "\n", "\r", "'", "''", `"`, "`", "[", "]", "\\", "$$", "$a$", "--", "-- ", "#", "//", "/*", "*/", "/*!", "/*!50000 ", "/*M!", "e'", "E'x\\''",
		"q'[", "]'", "nq'{", "}'", "1", "1e", "0xdrop", "1drop", ";", "(", ")", "a", "é", "drop table t", "@", "*", "x'", "'''", `"""`,
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range volume.FullOrQuick(20_000, 2_000) {
		var text strings.Builder
		for range 1 + rnd.IntN(30) {
			text.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		sameAlone(t, text.String())
	}
}

func FuzzSharedDialectTokens(f *testing.F) {
	f.Add("select 'a' -- b\r; drop table /*! c */ x where d = e'\\'' or q'[f]'")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) <= maxText {
			sameAlone(t, text)
		}
	})
}

// sameAlone compares two readings of a dialect, together with the others and alone: the tokens of its statements, and the
// resulting verdicts.
func sameAlone(t *testing.T, text string) {
	const all = dialectSet(1<<len(dialects) - 1)
	read := func(as dialectSet) (tokens [len(dialects)][][]sqlToken, r dialectVerdicts, wanted dialectSet) {
		var l sqlLexer
		l.reset(text, as)
		for l.nextStatement() {
			for d := l.dialects; d != 0; d &= d - 1 {
				tokens[d.first()] = append(tokens[d.first()], slices.Clone(l.tokens))
			}
		}
		l.reset(text, as)
		r.classifyStatements(&l)
		return tokens, r, l.wanted
	}
	tokens, r, wanted := read(all)
	for d := all; d != 0; d &= d - 1 {
		one := d & -d
		alone, its, _ := read(one)
		if got, want := tokens[d.first()], alone[d.first()]; !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%q as %b: %v, alone %v", text, dialects[d.first()], got, want)
		}
		if got, want := r.worstOf(one), its.worstOf(one); one&wanted != 0 && got != want {
			t.Fatalf("%q as %b: %v, alone %v", text, dialects[d.first()], got, want)
		}
	}
}
