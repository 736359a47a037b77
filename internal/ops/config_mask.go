package ops

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/redact"
)

// A placeholder stands for a secret where the file is shown. Its number follows
// from the secret and the key of this installation, so that it is the same in every
// text that holds the secret, and another one for every other secret: a
// placeholder of an earlier text never stands for a different secret of this one.
var placeholder = regexp.MustCompile(`\*\*\*masked:[0-9]{1,20}\*\*\*`)

// masker makes placeholders.
type masker struct{ key []byte }

// masked is a text of the file without its secrets.
type masked struct {
	text  string
	swaps []swap
	by    map[string]string // placeholder → what it stands for
}

// swap is a place where text and secret stand for one another.
type swap struct {
	at                  int // of the secret, in the text with secrets
	line, column        int // of the secret
	secret, placeholder string
}

// hide puts placeholders in the place of the secrets of a text. before is an
// earlier text, which tells what may be shown of one that cannot be parsed.
func (m masker) hide(text, before []byte) masked {
	places := config.SecretSpans(text, before)
	for _, p := range placeholder.FindAllIndex(text, -1) { // as somebody has saved it
		places = append(places, config.Span{From: p[0], To: p[1]})
	}
	shown := m.swap(text, apart(places))
	if back, _ := shown.putBack(shown.text); !bytes.Equal(back, text) {
		// What stands around a secret makes another placeholder of it.
		var lines []config.Span
		for at := 0; at < len(text); {
			n := bytes.IndexByte(text[at:], '\n')
			if n < 0 {
				n = len(text) - at
			}
			if n > 0 {
				lines = append(lines, config.Span{From: at, To: at + n})
			}
			at += n + 1
		}
		shown = m.swap(text, lines)
	}
	return shown
}

// apart returns places in order, those that overlap as one.
func apart(places []config.Span) (out []config.Span) {
	slices.SortFunc(places, func(a, b config.Span) int { return a.From - b.From })
	for _, p := range places {
		if n := len(out); n > 0 && p.From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, p.To)
			continue
		}
		out = append(out, p)
	}
	return out
}

func (m masker) swap(text []byte, places []config.Span) masked {
	out := masked{by: map[string]string{}}
	var b strings.Builder
	at := 0
	for _, p := range places {
		secret := string(text[p.From:p.To])
		b.Write(text[at:p.From])
		sign := m.sign(secret, out.by)
		out.by[sign] = secret
		b.WriteString(sign)
		out.swaps = append(out.swaps, swap{at: p.From, secret: secret, placeholder: sign})
		at = p.To
	}
	b.Write(text[at:])
	out.text = b.String()
	place(out.swaps, text)
	return out
}

// sign is the placeholder of a secret, none that stands for another one.
func (m masker) sign(secret string, taken map[string]string) string {
	for try := byte(0); ; try++ {
		mac := hmac.New(sha256.New, m.key)
		mac.Write(append([]byte(secret), try))
		const digits = 10_000_000_000
		sign := fmt.Sprintf("***masked:%d***", binary.BigEndian.Uint64(mac.Sum(nil))%digits)
		if other, found := taken[sign]; !found || other == secret {
			return sign
		}
	}
}

// place finds the lines and columns of swaps, which are in order.
func place(swaps []swap, text []byte) {
	at, line, start := 0, 1, 0
	for i := range swaps {
		for ; at < swaps[i].at; at++ {
			if text[at] == '\n' {
				line, start = line+1, at+1
			}
		}
		swaps[i].line, swaps[i].column = line, utf8.RuneCount(text[start:at])+1
	}
}

// putBack returns a text with what its placeholders stand for in their places, and
// the mistakes of those that stand for nothing.
func (t masked) putBack(text string) (whole []byte, unknown []Mistake) {
	back, unknown := t.restore(text)
	return back.whole, unknown
}

// restored is a text in which placeholders were put back.
type restored struct {
	whole []byte
	masked
}

// restore is putBack with the places.
func (t masked) restore(text string) (restored, []Mistake) {
	out := restored{masked: masked{text: text, by: t.by}}
	var unknown []swap
	at := 0
	for _, p := range placeholder.FindAllStringIndex(text, -1) {
		sign := text[p[0]:p[1]]
		secret, found := t.by[sign]
		if !found {
			unknown = append(unknown, swap{at: p[0], placeholder: sign})
			continue
		}
		out.whole = append(out.whole, text[at:p[0]]...)
		out.swaps = append(out.swaps, swap{at: len(out.whole), secret: secret, placeholder: sign})
		out.whole = append(out.whole, secret...)
		at = p[1]
	}
	out.whole = append(out.whole, text[at:]...)
	place(out.swaps, out.whole)
	place(unknown, []byte(text))
	var mistakes []Mistake
	for _, u := range unknown {
		mistakes = append(mistakes, Mistake{u.line, u.column, "", u.placeholder + " stands for nothing that is in the file", "write the value itself"})
	}
	return out, mistakes
}

// exposed returns the mistakes of secrets that were put back where they would be
// shown: who may not see a secret shall not move it to where it can be seen.
func (t restored) exposed(before []byte) (out []Mistake) {
	hidden := config.SecretSpans(t.whole, before)
	for _, s := range t.swaps {
		end := s.at + len(s.secret)
		i, _ := slices.BinarySearchFunc(hidden, s.at, func(p config.Span, at int) int { return p.To - at - 1 })
		if !placeholder.MatchString(s.secret) && (i == len(hidden) || s.at < hidden[i].From || hidden[i].To < end) {
			line, column := t.shownAt(s.line, s.column)
			out = append(out, Mistake{line, column, "", s.placeholder + " stands where its value would be shown", "write the value itself, or leave it where it was: in env, headers and the like"})
		}
	}
	return out
}

// shownAt returns where a place of the text with secrets is in the one that is
// shown.
func (t masked) shownAt(line, column int) (int, int) {
	shift := 0
	i, _ := slices.BinarySearchFunc(t.swaps, line, func(s swap, line int) int { return s.line - line })
	for ; i < len(t.swaps) && t.swaps[i].line == line && t.swaps[i].column < column; i++ {
		s := t.swaps[i]
		length := utf8.RuneCountInString(s.secret)
		if column < s.column+length {
			return line, s.column + shift
		}
		shift += utf8.RuneCountInString(s.placeholder) - length
	}
	return line, column + shift
}

// mistakes are those of the text with secrets, as they are shown.
func (t masked) mistakes(all []config.Mistake) (out []Mistake) {
	for _, m := range all {
		line, column := m.Line, m.Column
		if line > 0 {
			line, column = t.shownAt(line, column)
		}
		out = append(out, Mistake{line, column, t.scrub(m.Path), t.scrub(m.Message), t.scrub(m.Hint)})
	}
	return out
}

// telling is what a secret has that is no word.
var telling = regexp.MustCompile(`[^A-Za-z]`)

// scrub takes the secrets out of what is said about the text.
func (t masked) scrub(said string) string {
	const shortest = 6 // shorter ones, and words, stand in what is said by chance
	for _, secret := range t.by {
		if len(secret) < shortest || !telling.MatchString(secret) {
			continue
		}
		said = strings.ReplaceAll(said, secret, "***")
		if !strings.Contains(secret, `\\`) {
			continue
		}
		if plain, ok := wirejson.String([]byte(`"` + secret + `"`)); ok && plain != secret {
			said = strings.ReplaceAll(said, plain, "***")
			said = strings.ReplaceAll(said, strconv.Quote(plain), `"***"`)
		}
	}
	return redact.Text(said)
}

// scrubAll is scrub of many.
func (t masked) scrubAll(said []string) []string {
	out := []string{}
	for _, one := range said {
		out = append(out, t.scrub(one))
	}
	return out
}
