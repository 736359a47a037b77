package scan

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// each rewrites every letter of a text.
func each(text string, fn func(r rune) string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteString(fn(r))
	}
	return b.String()
}

func between(sep string) func(string) string {
	return func(text string) string {
		words := strings.Fields(text)
		for k, w := range words {
			words[k] = strings.Join(strings.Split(w, ""), sep)
		}
		return strings.Join(words, " ")
	}
}

func table(pairs string) func(string) string {
	to := map[rune]string{}
	for p := range strings.FieldsSeq(pairs) {
		r := []rune(p)
		to[r[0]] = string(r[1:])
	}
	return func(text string) string {
		return each(text, func(r rune) string {
			if s, ok := to[r]; ok {
				return s
			}
			return string(r)
		})
	}
}

// shifted moves the small and the capital letters to other places.
func shifted(small, capital rune) func(string) string {
	return func(text string) string {
		return each(text, func(r rune) string {
			switch {
			case 'a' <= r && r <= 'z':
				return string(r - 'a' + small)
			case 'A' <= r && r <= 'Z':
				return string(r - 'A' + capital)
			}
			return string(r)
		})
	}
}

func format(layout string) func(string) string {
	return func(text string) string {
		return each(text, func(r rune) string { return fmt.Sprintf(layout, r) })
	}
}

func middle(sep string) func(string) string {
	return func(text string) string {
		words := strings.Fields(text)
		for k, w := range words {
			if len(w) >= 6 && strings.IndexFunc(w, func(r rune) bool { return !unicode.IsLetter(r) }) < 0 {
				words[k] = w[:len(w)/2] + sep + w[len(w)/2:]
			}
		}
		return strings.Join(words, " ")
	}
}

func camel(text string) string {
	words := strings.Fields(text)
	for k, w := range words {
		words[k] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

func reversed(text string) string {
	r := []rune(text)
	slices.Reverse(r)
	return string(r)
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// evasions hide a text from one who looks for its words.
var evasions = map[string]func(string) string{
	"capitals": strings.ToUpper,
	"alternating case": func(t string) string {
		n := 0
		return each(t, func(r rune) string {
			n++
			if n%2 == 0 {
				return string(unicode.ToUpper(r))
			}
			return string(unicode.ToLower(r))
		})
	},
	"zero-width space":   between("\u200b"),
	"zero-width joiner":  between("\u200d"),
	"word joiner":        between("\u2060"),
	"soft hyphen":        between("\u00ad"),
	"byte order mark":    middle("\ufeff"),
	"zero-width blanks":  func(t string) string { return strings.ReplaceAll(t, " ", "\u200b") },
	"variation selector": between("\ufe00"),
	"combining marks":    between("\u0336"),
	"accents": func(t string) string {
		return each(t, func(r rune) string {
			if unicode.IsLetter(r) {
				return string(r) + "\u0301"
			}
			return string(r)
		})
	},
	"cyrillic":       table("aа eе oо pр cс xх yу iі sѕ jј hһ"),
	"greek":          table("oο iι vν aα uυ pρ kκ eε"),
	"small capitals": table("aᴀ bʙ cᴄ dᴅ eᴇ gɢ hʜ iɪ jᴊ kᴋ lʟ mᴍ nɴ oᴏ pᴘ rʀ tᴛ uᴜ vᴠ wᴡ yʏ zᴢ"),
	"fullwidth":      shifted('ａ', 'Ａ'),
	"bold":           shifted('𝐚', '𝐀'),
	"sans italic":    shifted('𝘢', '𝘈'),
	"monospace":      shifted('𝚊', '𝙰'),
	"circled":        shifted('ⓐ', 'Ⓐ'),
	"squared":        func(t string) string { return shifted('🄰', '🄰')(t) },
	"regional":       func(t string) string { return shifted('🇦', '🇦')(t) },
	"tag characters": func(t string) string { return "Adds." + each(t, func(r rune) string { return string(0xE0000 + r) }) },
	"selector bytes": func(t string) string {
		return "Adds." + each(t, func(r rune) string { return string(0xE0100 + r - 16) })
	},
	"right to left":     func(t string) string { return "\u202e" + reversed(t) + "\u202c" },
	"isolates":          func(t string) string { return "\u2066" + t + "\u2069" },
	"base64":            base64Of,
	"base64 twice":      func(t string) string { return base64Of(base64Of(t)) },
	"base64 url":        func(t string) string { return base64.RawURLEncoding.EncodeToString([]byte(t)) },
	"base32":            func(t string) string { return base32.StdEncoding.EncodeToString([]byte(t)) },
	"hex":               func(t string) string { return hex.EncodeToString([]byte(t)) },
	"hex with blanks":   func(t string) string { return strings.TrimSpace(format("%02x ")(t)) },
	"hex escapes":       format(`\x%02x`),
	"unicode escapes":   format(`\u%04x`),
	"octal escapes":     format(`\%03o`),
	"character codes":   func(t string) string { return strings.TrimSpace(format("%d ")(t)) },
	"binary":            func(t string) string { return strings.TrimSpace(format("%08b ")(t)) },
	"entities":          format("&#%d;"),
	"hex entities":      format("&#x%x;"),
	"percent":           format("%%%02X"),
	"percent of blanks": func(t string) string { return url.PathEscape(t) },
	"plus for blanks":   func(t string) string { return url.QueryEscape(t) },
	"rot13":             func(t string) string { return each(t, func(r rune) string { return string(rot13Letter(byte(r))) }) },
	"reversed":          reversed,
	"reversed words": func(t string) string {
		w := strings.Fields(t)
		for k := range w {
			w[k] = reversed(w[k])
		}
		return strings.Join(w, " ")
	},
	"leet":               table("a4 e3 i1 o0 s5"),
	"leet t":             table("e3 o0 t7 s$ a@"),
	"spaced":             func(t string) string { return strings.ReplaceAll(between(" ")(t), "  ", " ") },
	"wide spaced":        func(t string) string { return strings.Join(strings.Split(strings.ReplaceAll(t, " ", "  "), ""), " ") },
	"dotted":             between("."),
	"dashed":             between("-"),
	"starred":            between("*"),
	"underlined":         between("_"),
	"parted by a dash":   middle("-"),
	"parted by stars":    middle("**"),
	"parted by a blank":  middle(" "),
	"parted by tags":     middle("<b></b>"),
	"parted by comments": middle("<!-- -->"),
	"no blanks":          func(t string) string { return strings.ReplaceAll(t, " ", "") },
	"camel case":         camel,
	"snake case":         func(t string) string { return strings.ReplaceAll(t, " ", "_") },
	"kebab case":         func(t string) string { return strings.ReplaceAll(t, " ", "-") },
	"lines":              func(t string) string { return strings.ReplaceAll(t, " ", "\n") },
	"no-break spaces":    func(t string) string { return strings.ReplaceAll(t, " ", "\u00a0") },
	"wide blanks":        func(t string) string { return strings.ReplaceAll(t, " ", "  \t ") },
	"comment":            func(t string) string { return "Adds. <!-- " + t + " -->" },
	"far down":           func(t string) string { return "Adds two numbers." + strings.Repeat("\n", 60) + t },
}

// TestEvasions: a text that is found in plain form is also found when it is hidden.
func TestEvasions(t *testing.T) {
	for name, hide := range evasions {
		t.Run(name, func(t *testing.T) {
			plain, found := 0, 0
			var missed []string
			for _, seed := range seeds {
				if scanText(t, seed).Verdict == Clean {
					continue
				}
				plain++
				if scanText(t, hide(seed)).Verdict != Clean {
					found++
				} else {
					missed = append(missed, hide(seed))
				}
			}
			if found*100 < plain*95 {
				t.Errorf("%d of %d found; missed: %q", found, plain, missed)
			}
		})
	}
}

func TestSeeds(t *testing.T) {
	for _, seed := range seeds {
		if r := scanText(t, seed); r.Verdict == Clean {
			t.Errorf("not found: %s", seed)
		}
	}
}

func scanText(t *testing.T, description string) Report {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"name": "add", "description": description})
	if err != nil {
		t.Fatal(err)
	}
	return ScanDefinition(define(t, string(raw)))
}
