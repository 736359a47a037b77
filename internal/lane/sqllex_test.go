package lane

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What a dialect takes over from another one is what it would have read itself.
func TestWhatIsTakenOver(t *testing.T) {
	pieces := []string{
		"select", " ", "\n", "\r", "'", "''", `"`, "`", "[", "]", "\\", "$$", "$a$", "--", "-- ", "#", "//", "/*", "*/", "/*!", "/*!50000 ", "/*M!", "e'", "E'x\\''",
		"q'[", "]'", "nq'{", "}'", "1", "1e", "0xdrop", "1drop", ";", "(", ")", "a", "é", "drop table t", "@", "*", "x'", "'''", `"""`,
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var text strings.Builder
		for range 1 + rnd.IntN(30) {
			text.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		sameAlone(t, text.String())
	}
}

func FuzzWhatIsTakenOver(f *testing.F) {
	f.Add("select 'a' -- b\r; drop table /*! c */ x where d = e'\\'' or q'[f]'")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) <= maxText {
			sameAlone(t, text)
		}
	})
}

func sameAlone(t *testing.T, text string) {
	together := lexer{text: text, words: sqlWords()}
	for _, d := range dialects {
		alone := lexer{text: text, words: sqlWords()}
		alone.turn(d)
		alone.run()
		if !together.turn(d) {
			if !slices.ContainsFunc(together.passes, func(p pass) bool { return slices.Equal(p.tokens, alone.tokens) && p.broken == alone.broken }) {
				t.Fatalf("%q as %b is not read, and no dialect before reads it so: %v %v", text, d, alone.tokens, alone.broken)
			}
			continue
		}
		together.run()
		if !slices.Equal(together.tokens, alone.tokens) || together.broken != alone.broken {
			t.Fatalf("%q as %b: %v %v, alone %v %v", text, d, together.tokens, together.broken, alone.tokens, alone.broken)
		}
		if one, other := together.judge(), alone.judge(); one != other {
			t.Fatalf("%q as %b: %v, alone %v", text, d, one, other)
		}
	}
}
