package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
)

const (
	letters  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	decimals = "0123456789"
	anyWord  = letters + decimals
)

// secretGenerator generates realistic secrets and texts around them.
type secretGenerator struct{ *rand.Rand }

func (m secretGenerator) randomString(set string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = set[m.IntN(len(set))]
	}
	return string(b)
}

// newToken returns a credential with a recognizable format.
func (m secretGenerator) newToken() string {
	switch m.IntN(9) {
	case 0:
		return "ghp_" + m.randomString(anyWord, 36)
	case 1:
		return "AKIA" + m.randomString("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)
	case 2:
		return "sk_live_" + m.randomString(anyWord, 24)
	case 3:
		return "xoxb-" + m.randomString(decimals, 12) + "-" + m.randomString(decimals, 12) + "-" + m.randomString(anyWord, 24)
	case 4:
		return "sk-proj-" + m.randomString(anyWord+"-_", 64)
	case 5:
		return "glpat-" + m.randomString(anyWord, 20)
	case 6:
		return "npm_" + m.randomString(anyWord, 36)
	case 7:
		return "AIza" + m.randomString(anyWord+"-_", 35)
	}
	claims, _ := json.Marshal(map[string]any{"sub": m.randomString(decimals, 10), "name": m.randomString(letters, 8)})
	return "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + base64.RawURLEncoding.EncodeToString(claims) + "." + m.randomString(anyWord+"-_", 43)
}

// newPassword returns a secret that is recognizable only by its name.
func (m secretGenerator) newPassword() string {
	return m.randomString(anyWord, 10+m.IntN(12)) + m.randomString(decimals, 2)
}

// newFileWithSecret returns a file or a document with a secret in it.
func (m secretGenerator) newFileWithSecret() (text, secret string) {
	secret, key := m.newToken(), ""
	if m.IntN(2) == 0 {
		secret, key = m.newPassword(), []string{"password", "client_secret", "api_key", "auth_token"}[m.IntN(4)]
	} else {
		key = []string{"value", "access_token", "credential", "note"}[m.IntN(4)]
	}
	host := "db-" + m.randomString(decimals, 2) + ".example.com"
	switch m.IntN(6) {
	case 0:
		text = fmt.Sprintf("NODE_ENV=production\nHOST=%s\n%s=%s\nPORT=%s\n", host, strings.ToUpper(key), secret, m.randomString(decimals, 4))
	case 1:
		text = fmt.Sprintf("[server]\nhost = %s\n%s = %s\n\n[log]\nlevel = debug\n", host, key, secret)
	case 2:
		b, _ := json.Marshal(map[string]any{"host": host, key: secret, "port": m.IntN(9999), "tls": true})
		text = string(b)
	case 3:
		b, _ := json.MarshalIndent(map[string]any{"env": map[string]string{key: secret}, "name": host}, "", "  ")
		text = string(b)
	case 4:
		text = fmt.Sprintf("server:\n  host: %s\n  %s: \"%s\"\n  retries: 3\n", host, key, secret)
	case 5:
		secret = base64.StdEncoding.EncodeToString([]byte("ann:" + secret))
		b, _ := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{"auth": secret}}})
		text = string(b)
	}
	return text, secret
}

// encoding writes a text in another form. at returns the position in that form of the byte at
// a position of the text.
type encoding struct {
	encode        func(string) string
	encodedOffset func(text string, at int) int
}

func allEncodings() map[string]encoding {
	hexed := func(s string) string { return hex.EncodeToString([]byte(s)) }
	times := func(n int) func(string, int) int { return func(_ string, at int) int { return n * at } }
	threes := func(_ string, at int) int { return at / 3 * 4 }
	const line = 76
	return map[string]encoding{
		"base64":          {func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }, threes},
		"base64 for URLs": {func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }, threes},
		"base64 in lines": {func(s string) string { return wrapLines(base64.StdEncoding.EncodeToString([]byte(s)), line) },
			func(_ string, at int) int { return at/3*4 + at/3*4/line }},
		"hex":                 {hexed, times(2)},
		"hex in capitals":     {func(s string) string { return strings.ToUpper(hexed(s)) }, times(2)},
		"hex with spaces":     {func(s string) string { return separatePairs(hexed(s), " ") + " " }, times(3)},
		"hex as escapes":      {func(s string) string { return `\x` + separatePairs(hexed(s), `\x`) }, times(4)},
		"every byte for URLs": {func(s string) string { return "%" + separatePairs(strings.ToUpper(hexed(s)), "%") }, times(3)},
		"query":               {url.QueryEscape, func(s string, at int) int { return len(url.QueryEscape(s[:at])) }},
	}
}

// newEncodedSamples returns samples of encoded secrets, with one rule per form.
func newEncodedSamples(seed uint64) []secretSample {
	const each = 200
	m := secretGenerator{rand.New(rand.NewPCG(seed, 0))}
	var samples []secretSample
	around := func(text string) string {
		switch m.IntN(4) {
		case 0:
			return "The content is " + text + " as of today."
		case 1:
			b, _ := json.Marshal(map[string]any{"path": "etc/app.conf", "size": len(text), "content": text})
			return string(b)
		case 2:
			return "data=" + text + "&status=200"
		}
		return text
	}
	add := func(form string, make func() (text, secret string)) {
		for range each {
			text, secret := make()
			samples = append(samples, secretSample{form, around(text), secret})
		}
	}
	all := allEncodings()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		add(name+" of a token", func() (string, string) { s := m.newToken(); return c.encode(s), c.encode(s) })
		add(name+" of a file", func() (string, string) {
			f, s := m.newFileWithSecret()
			at := strings.Index(f, s)
			text := c.encode(f)
			return text, text[c.encodedOffset(f, at):c.encodedOffset(f, at+len(s))]
		})
	}
	ways := map[string]func(parts []string) string{
		"added":           func(p []string) string { return `"` + strings.Join(p, `" + "`) + `"` },
		"added with dots": func(p []string) string { return `'` + strings.Join(p, `' . '`) + `'` },
		"side by side":    func(p []string) string { return `"` + strings.Join(p, `" "`) + `"` },
		"on lines":        func(p []string) string { return `("` + strings.Join(p, "\"\n   \"") + `")` },
		"continued":       func(p []string) string { return strings.Join(p, "\\\n") },
		"in a list":       func(p []string) string { return `["` + strings.Join(p, `", "`) + `"].join("")` },
		"in a JSON list":  func(p []string) string { b, _ := json.Marshal(map[string]any{"parts": p}); return string(b) },
		"in members": func(p []string) string {
			return fmt.Sprintf(`{"part1":"%s","part2":"%s"}`, p[0], strings.Join(p[1:], ""))
		},
		"wrapped":          func(p []string) string { return strings.Join(p, "\n") },
		"parted by spaces": func(p []string) string { return strings.Join(p, " ") },
	}
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		join := ways[name]
		add("split, "+name, func() (string, string) {
			s := m.newToken()
			parts := splitSecret(m, s)
			longest := ""
			for _, p := range parts {
				if len(p) > len(longest) {
					longest = p
				}
			}
			return join(parts), longest
		})
	}
	return samples
}

// splitSecret splits a secret into two or three parts.
func splitSecret(m secretGenerator, s string) []string {
	n := 2 + m.IntN(2)
	parts := make([]string, 0, n)
	for i := n; i > 1; i-- {
		at := 4 + m.IntN(max(1, len(s)/i))
		parts, s = append(parts, s[:at]), s[at:]
	}
	return append(parts, s)
}

func wrapLines(s string, n int) string {
	var b strings.Builder
	for len(s) > n {
		b.WriteString(s[:n] + "\n")
		s = s[n:]
	}
	return b.String() + s
}

func separatePairs(s, between string) string {
	var b strings.Builder
	for i := 0; i < len(s); i += 2 {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(s[i : i+2])
	}
	return b.String()
}
