package ops

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/config"
)

// secrets generates random secrets of letters, digits and symbols, and records them.
type secrets struct {
	*rand.Rand
	made []string
}

func (s *secrets) one() string {
	const of = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789-_.+=/!#"
	b := []byte{of[s.IntN(24)], of[48+s.IntN(8)]}
	for range 8 + s.IntN(30) {
		b = append(b, of[s.IntN(len(of))])
	}
	s.made = append(s.made, string(b))
	return string(b)
}

// file returns a configuration file with secrets in all possible places.
func (s *secrets) file() string {
	repeated := s.one()
	return fmt.Sprintf(`{
  // "github": {"command": "npx", "env": {"OLD": %q}},
  "api_key": %q, /* was
  %q: %q */ "log": {"level": "info"},
  "unknown": {"deep": [%q, {"x": %q}]},
  "database": "postgres://user:%s@host/db",
  "mcpServers": {
    "a": {"command": "npx", "args": ["-y", "pkg", "--token", %q, "--api-key=%s", "see", "https://u:%s@h/x?api_key=%s"],
      "env": {"PLAIN": %q, "NUMBER": 8%09d, "ON": "1", "REF": "${env:HOME}", "TWICE": %q, "ESCAPED": "\u0041%s"}}, // %s
    "b": {"url": "https://me:%s@example.com/mcp?token=%s", "headers": {"Authorization": "Bearer %s", "X": %q},
      "oauth": {"client_id": "id", "client_secret": %q}},
    "c": {"serverUrl": "https://x/", "headers": ["X: %s"], "auth": {"key": %q}, "enviroment": {"A": %q}},
    "d": {"command": ["run", "--password", %q], "environment": {"P": %q}},
  }
}
`, s.one(), s.one(), "password", s.one(), s.one(), s.one(), letters(s), s.one(), s.one(), letters(s), letters(s), s.one(), s.number(), repeated, s.one(), repeated,
		letters(s), letters(s), s.one(), s.one(), s.one(), s.one(), s.one(), s.one(), s.one(), s.one())
}

func (s *secrets) number() int {
	n := s.IntN(1_000_000_000)
	s.made = append(s.made, fmt.Sprintf("8%09d", n))
	return n
}

// letters generates a secret that needs no escaping in a URL.
func letters(s *secrets) string {
	const of = "abcdefghijkmnpqrstuvwxyz23456789"
	b := []byte("aB3")
	for range 14 {
		b = append(b, of[s.IntN(len(of))])
	}
	s.made = append(s.made, string(b))
	return string(b)
}

// broken contains functions that change a file, most of them so that it cannot be parsed.
var broken = map[string]func(r *rand.Rand, text string) string{
	"whole":      func(_ *rand.Rand, text string) string { return text },
	"cut off":    func(r *rand.Rand, text string) string { return text[:r.IntN(len(text))] },
	"no colon":   func(r *rand.Rand, text string) string { return without(r, text, ":") },
	"no comma":   func(r *rand.Rand, text string) string { return without(r, text, ",") },
	"no quote":   func(r *rand.Rand, text string) string { return without(r, text, `"`) },
	"no bracket": func(r *rand.Rand, text string) string { return without(r, text, "}") },
	"end of line": func(r *rand.Rand, text string) string {
		i := r.IntN(len(text))
		return text[:i] + "\n" + text[i:]
	},
	"CRLF": func(_ *rand.Rand, text string) string { return strings.ReplaceAll(text, "\n", "\r\n") },
	"BOM":  func(_ *rand.Rand, text string) string { return "\uFEFF" + text },
}

// without removes a random occurrence of what.
func without(r *rand.Rand, text, what string) string {
	pieces := strings.SplitAfter(text, what)
	i := r.IntN(len(pieces))
	pieces[i] = strings.TrimSuffix(pieces[i], what)
	return strings.Join(pieces, "")
}

// No secret of a valid or broken file is shown. Saving the shown text restores the file byte for byte.
func TestNoSecretIsShown(t *testing.T) {
	m := secretMasker{[]byte("key")}
	for way, breaks := range broken {
		t.Run(way, func(t *testing.T) {
			for seed := range uint64(60) {
				s := &secrets{Rand: rand.New(rand.NewPCG(seed, 7))}
				whole := s.file()
				text := breaks(s.Rand, whole)
				shown := m.maskText([]byte(text), []byte(whole))
				said := placeholder.ReplaceAllString(shown.text, "#")
				for i, secret := range s.made {
					if (i == 1 || i == 3) && !strings.Contains("whole CRLF BOM", way) {
						continue // the secret is in a comment, which a broken file may not end
					}
					// A line break may split a secret, so half of a secret must not be shown either.
					for _, half := range []string{secret[:len(secret)/2+1], secret[len(secret)/2-1:]} {
						if strings.Contains(said, half) {
							t.Fatalf("seed %d: %q of %q is shown:\n%s\nof\n%s", seed, half, secret, shown.text, text)
						}
					}
				}
				if back, mistakes := shown.unmask(shown.text); string(back.whole) != text || mistakes != nil {
					t.Fatalf("seed %d: unmask: %v\n%s\nwant\n%s", seed, mistakes, back.whole, text)
				}
				if n := strings.Count(shown.text, "\n"); n != strings.Count(text, "\n") {
					t.Fatalf("seed %d: %d lines", seed, n)
				}
			}
		})
	}
}

// Text that is not secret stays visible. In a broken file, this requires that the earlier text contains it.
func TestNonSecretsAreShown(t *testing.T) {
	before := `{"tools_limit": 5, /* the best are "a" and "b" */ "mcpServers": {"github": {"command": "npx", "args": ["-y", "pkg"], "env": {"REF": "Bearer ${env:X}", "E": ""}}}}`
	m := secretMasker{[]byte("key")}
	for text, want := range map[string]string{
		before: before,
		`{"mcpServers": {"server-01": {"command": "x", "env": {"A": "server-01", "B": "word-0001"}, "args": ["word-0001"]}}}`: `{"mcpServers": {"server-01": {"command": "x", "env": {"A": "#", "B": "#"}, "args": ["#"]}}}`,
		strings.Replace(before, `"npx",`, `"npx"`, 1):                                                               strings.Replace(before, `"npx",`, `"npx"`, 1),
		`{"mcpServers": {"a": {"command": "x", "env": {"A": "one"}, "url": "https://a:bcd12@h/"}}}`:                 `{"mcpServers": {"a": {"command": "x", "env": {"A": "#"}, "url": "https://a:#@h/"}}}`,
		`{"mcpServers": {"a": {"command": "x", "autoApprove": ["read_file"], "timeout": 60, "env": {"N": 1}}}}`:     `{"mcpServers": {"a": {"command": "x", "autoApprove": ["read_file"], "timeout": 60, "env": {"N": #}}}}`,
		`{"mcpServers": {"a": {"command": "x", "env": {"A": "***masked:5***"}}}} // ***masked:1***`:                 `{"mcpServers": {"a": {"command": "x", "env": {"A": "#"}}}} // #`,
		`{"mcpServers": {"new": {"command" "node", "env": {"A": "x"}, "lazy": true, "call_timeout": "2m"}}, "a": 7`: `{"mcpServers": {"new": {"command" "#", "env": {"#": "#"}, "lazy": true, "call_timeout": "#"}}, "#": 7`,
	} {
		if got := placeholder.ReplaceAllString(m.maskText([]byte(text), []byte(before)).text, "#"); got != want {
			t.Errorf("shown\n%s\nwant\n%s", got, want)
		}
	}
}

// A secret has the same placeholder in every text, and each placeholder belongs to one secret.
func TestPlaceholdersIdentifySecrets(t *testing.T) {
	m := secretMasker{[]byte("key")}
	one := m.maskText([]byte(`{"mcpServers": {"a": {"command": "x", "env": {"A": "first", "B": "second"}}}}`), nil)
	two := m.maskText([]byte(`{"mcpServers": {"a": {"command": "x", "env": {"B": "second", "C": "third"}}}}`), nil)
	if one.replacements[1].placeholder != two.replacements[0].placeholder || one.replacements[0].placeholder == one.replacements[1].placeholder {
		t.Errorf("%v, %v", one.replacements, two.replacements)
	}
	other := secretMasker{[]byte("other")}.maskText([]byte(`{"api_key": "second"}`), nil)
	if other.replacements[0].placeholder == one.replacements[1].placeholder {
		t.Error("the placeholder does not depend on the key")
	}
	// A placeholder that no longer exists, as in an outdated text, is reported as a mistake with its position.
	_, mistakes := two.unmask("{\n  " + one.text)
	if len(mistakes) != 1 || mistakes[0].Line != 2 || mistakes[0].Column != strings.Index(one.text, "***")+3 || !strings.Contains(mistakes[0].Message, one.replacements[0].placeholder) {
		t.Errorf("%+v", mistakes)
	}
}

// A secret is not restored in a place where it would be shown unmasked.
func TestSecretsAreNotMoved(t *testing.T) {
	text := []byte(`{"mcpServers": {"a": {"command": "x", "args": [], "env": {"A": "hidden words"}}}}`)
	shown := secretMasker{[]byte("key")}.maskText(text, nil)
	sign := shown.replacements[0].placeholder
	for moved, ok := range map[string]bool{
		shown.text: true,
		`{"mcpServers": {"b": {"url": "http://x/", "headers": {"X": "` + sign + `"}}}}`: true,
		`{"mcpServers": {"b": {"command": "x", "args": ["--token", "` + sign + `"]}}}`:  true,
		`{"mcpServers": {"b": {"command": "` + sign + `"}}}`:                            false,
		`{"mcpServers": {"b": {"command": "x", "args": ["` + sign + `"]}}}`:             false,
		"{}\n// " + sign: false,
		`{"mcpServers": {"` + sign + `": {"command": "x"}}}`: false,
	} {
		back, mistakes := shown.unmask(moved)
		if mistakes != nil {
			t.Fatal(mistakes)
		}
		got := back.findExposedSecrets(nil)
		if (got == nil) != ok {
			t.Errorf("%s: %+v", moved, got)
		}
		if got != nil && strings.Split(moved, "\n")[got[0].Line-1][got[0].Column-1:][:len(sign)] != sign {
			t.Errorf("%s: the position is %+v", moved, got[0])
		}
	}
}

// Positions in a text with secrets are translated to the shown text.
func TestPositionsAreTranslated(t *testing.T) {
	text := "{\n" + `"mcpServers": {"a": {"command": "ä", "env": {"A": "kürzer", "B": "` + strings.Repeat("ß1", 40) + `"}, "oops": 1}}}`
	shown := secretMasker{[]byte("key")}.maskText([]byte(text), nil)
	at := func(text, what string) int {
		line := strings.Split(text, "\n")[1]
		return len([]rune(line[:strings.Index(line, what)])) + 1
	}
	for _, what := range []string{`"mcpServers"`, `"A"`, `"B"`, `"oops"`, "}}}"} {
		if _, column := shown.toMaskedPosition(2, at(text, what)); column != at(shown.text, what) {
			t.Errorf("%s: column %d, want %d", what, column, at(shown.text, what))
		}
	}
	if _, column := shown.toMaskedPosition(2, at(text, "ürzer")); column != at(shown.text, shown.replacements[0].placeholder) {
		t.Errorf("inside the placeholder: column %d", column)
	}
	got := shown.toMaskedMistakes([]config.Mistake{{Line: 2, Column: at(text, `"oops"`), Message: `bad value "kürzer"`}})
	if want := []Mistake{{2, at(shown.text, `"oops"`), "", `bad value "***"`, ""}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func FuzzHide(f *testing.F) {
	f.Add(`{"api_key": "x***masked:1***", "mcpServers": {"a": {"env": {"A": "\u0031"}}}} // "b": "c"`)
	f.Add((&secrets{Rand: rand.New(rand.NewPCG(1, 2))}).file())
	m := secretMasker{[]byte("key")}
	f.Fuzz(func(t *testing.T, text string) {
		shown := m.maskText([]byte(text), nil)
		if back, mistakes := shown.unmask(shown.text); string(back.whole) != text || mistakes != nil {
			t.Fatalf("%q became %q", text, back.whole)
		}
	})
}

// BenchmarkHide measures maskText. The time is approximately linear in the size of the text.
func BenchmarkHide(b *testing.B) {
	s := &secrets{Rand: rand.New(rand.NewPCG(1, 2))}
	var servers []string
	for i := range 20_000 {
		servers = append(servers, fmt.Sprintf(`"s%d": {"command": "x", "args": ["--token", "t%s"], "env": {"A": %q, "B": "1"}} // "X": %q`, i, s.one(), s.one(), s.one()))
	}
	text := []byte(`{"mcpServers": {` + strings.Join(servers, "\n,") + "}}")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		secretMasker{[]byte("key")}.maskText(text, nil)
	}
	b.Run("broken", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			secretMasker{[]byte("key")}.maskText(text[:len(text)-1], text)
		}
	})
}
