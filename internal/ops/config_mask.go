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

// placeholder matches a placeholder, which replaces a secret in the displayed file. Its number is derived from the
// secret and a key of this installation. Therefore, the same secret always has the same placeholder, and different
// secrets have different ones.
var placeholder = regexp.MustCompile(`\*\*\*masked:[0-9]{1,20}\*\*\*`)

// secretMasker replaces secrets with placeholders.
type secretMasker struct{ key []byte }

// maskedConfig is the text of a configuration file with placeholders instead of secrets.
type maskedConfig struct {
	text         string
	replacements []maskedSecret
	secrets      map[string]string // secrets by placeholder
}

// maskedSecret is a secret and the placeholder that replaces it.
type maskedSecret struct {
	at                  int // offset of the secret in the text with secrets
	line, column        int // position of the secret
	secret, placeholder string
}

// maskText replaces the secrets of a text with placeholders. before is an earlier text. It is used to find the secrets
// of a text that cannot be parsed.
func (m secretMasker) maskText(text, before []byte) maskedConfig {
	places := config.FindSecretSpans(text, before)
	for _, p := range placeholder.FindAllIndex(text, -1) { // placeholders that a user has saved
		places = append(places, config.Span{From: p[0], To: p[1]})
	}
	shown := m.replaceSecrets(text, mergeSpans(places))
	if back, _ := shown.unmask(shown.text); !bytes.Equal(back.whole, text) {
		// A placeholder and the text next to it form another placeholder, so whole lines are masked.
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
		shown = m.replaceSecrets(text, lines)
	}
	return shown
}

// mergeSpans sorts spans and merges those that overlap.
func mergeSpans(places []config.Span) (out []config.Span) {
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

func (m secretMasker) replaceSecrets(text []byte, places []config.Span) maskedConfig {
	out := maskedConfig{secrets: map[string]string{}}
	var b strings.Builder
	at := 0
	for _, p := range places {
		secret := string(text[p.From:p.To])
		b.Write(text[at:p.From])
		sign := m.placeholderFor(secret, out.secrets)
		out.secrets[sign] = secret
		b.WriteString(sign)
		out.replacements = append(out.replacements, maskedSecret{at: p.From, secret: secret, placeholder: sign})
		at = p.To
	}
	b.Write(text[at:])
	out.text = b.String()
	setSecretPositions(out.replacements, text)
	return out
}

// placeholderFor returns a placeholder for a secret that is not used for another secret.
func (m secretMasker) placeholderFor(secret string, taken map[string]string) string {
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

// setSecretPositions sets the line and column of each secret. The secrets are sorted by offset.
func setSecretPositions(swaps []maskedSecret, text []byte) {
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

// unmaskedConfig is a text with restored secrets, and their positions.
type unmaskedConfig struct {
	whole []byte
	maskedConfig
}

// unmask replaces the placeholders in a text with their secrets, and reports unknown placeholders as mistakes.
func (t maskedConfig) unmask(text string) (unmaskedConfig, []Mistake) {
	out := unmaskedConfig{maskedConfig: maskedConfig{text: text, secrets: t.secrets}}
	var unknown []maskedSecret
	at := 0
	for _, p := range placeholder.FindAllStringIndex(text, -1) {
		sign := text[p[0]:p[1]]
		secret, found := t.secrets[sign]
		if !found {
			unknown = append(unknown, maskedSecret{at: p[0], placeholder: sign})
			continue
		}
		out.whole = append(out.whole, text[at:p[0]]...)
		out.replacements = append(out.replacements, maskedSecret{at: len(out.whole), secret: secret, placeholder: sign})
		out.whole = append(out.whole, secret...)
		at = p[1]
	}
	out.whole = append(out.whole, text[at:]...)
	setSecretPositions(out.replacements, out.whole)
	setSecretPositions(unknown, []byte(text))
	return out, mapSlice(unknown, func(u maskedSecret) Mistake {
		return Mistake{u.line, u.column, "", u.placeholder + " does not represent a secret of the file", "write the value itself"}
	})
}

// findExposedSecrets reports secrets that were restored in places that are not masked when the text is shown.
// Otherwise, a client could move a secret to such a place to read it.
func (t unmaskedConfig) findExposedSecrets(before []byte) (out []Mistake) {
	hidden := config.FindSecretSpans(t.whole, before)
	for _, s := range t.replacements {
		end := s.at + len(s.secret)
		i, _ := slices.BinarySearchFunc(hidden, s.at, func(p config.Span, at int) int { return p.To - at - 1 })
		if !placeholder.MatchString(s.secret) && (i == len(hidden) || s.at < hidden[i].From || hidden[i].To < end) {
			line, column := t.toMaskedPosition(s.line, s.column)
			out = append(out, Mistake{line, column, "", s.placeholder + " is in a value that is shown", "write the value itself, or leave it in its place, such as env or headers"})
		}
	}
	return out
}

// toMaskedPosition converts a position in the text with secrets to the masked text.
func (t maskedConfig) toMaskedPosition(line, column int) (int, int) {
	shift := 0
	i, _ := slices.BinarySearchFunc(t.replacements, line, func(s maskedSecret, line int) int { return s.line - line })
	for ; i < len(t.replacements) && t.replacements[i].line == line && t.replacements[i].column < column; i++ {
		s := t.replacements[i]
		length := utf8.RuneCountInString(s.secret)
		if column < s.column+length {
			return line, s.column + shift
		}
		shift += utf8.RuneCountInString(s.placeholder) - length
	}
	return line, column + shift
}

// toMaskedMistakes converts mistakes in the text with secrets to mistakes in the masked text.
func (t maskedConfig) toMaskedMistakes(all []config.Mistake) (out []Mistake) {
	for _, m := range all {
		line, column := m.Line, m.Column
		if line > 0 {
			line, column = t.toMaskedPosition(line, column)
		}
		out = append(out, Mistake{line, column, t.redactText(m.Path), t.redactText(m.Message), t.redactText(m.Hint)})
	}
	return out
}

// nonLetter matches a character that distinguishes a secret from a word.
var nonLetter = regexp.MustCompile(`[^A-Za-z]`)

// redactText removes secrets from a message about the text.
func (t maskedConfig) redactText(said string) string {
	const shortest = 6 // shorter secrets and words may occur by chance
	for _, secret := range t.secrets {
		if len(secret) < shortest || !nonLetter.MatchString(secret) {
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
