package process

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// newToken returns a token in the form of a real one.
func newToken() string { return "gh" + "p_" + rand.Text() + rand.Text()[:10] }

// A server's stderr output is stored without the secrets in it, in any spelling, and without terminal control sequences.
func TestServerLogIsMasked(t *testing.T) {
	t.Parallel()
	token, own, key := newToken(), "own-"+rand.Text(), rand.Text()+rand.Text()
	begin, end := "-----BEGIN RSA PRIVATE"+" KEY-----\n", "-----END RSA PRIVATE"+" KEY-----\n"
	dir := t.TempDir()
	l := NewLog(dir, "s", NewMasker([]string{own}))
	for _, piece := range []string{
		"started with " + token + "\n", "half a line, then " + token[:20], token[20:] + " and more\n",
		"my own: " + own + "\n", "encoded: " + base64.StdEncoding.EncodeToString([]byte("user:"+token)) + "\n",
		begin, key + "\n", key[:10], key[10:] + "\n" + end + "after the key\n",
		"\x1b[31mred\x1b[0m \x1b]0;title\a \x1b[2J\u202e\xff\rnext\r\n", "\u009b31m日本語\tü\n",
	} {
		l.Write([]byte(piece))
	}
	l.WriteRemark("not connected: " + token)
	l.WriteStdoutLine([]byte("a debug line with " + token))
	l.WriteStdoutLine([]byte(strings.Repeat("x ", maxRemark/2-10) + token))
	l.Write([]byte("Password for " + token + ":"))
	pending := l.PartialLine()
	l.Close()
	raw, err := os.ReadFile(filepath.Join(dir, "s.log"))
	if err != nil {
		t.Fatal(err)
	}
	last, err := NewLogReader(dir, "s").ReadLast(100)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range last {
		lines = append(lines, l.String())
	}
	for where, text := range map[string]string{"the file": string(raw), "what is shown": strings.Join(lines, "\n"), "a line that has not ended": pending} {
		for _, secret := range []string{token, token[:20], own, key, key[:20], key[10:], base64.StdEncoding.EncodeToString([]byte("user:" + token))[:30]} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %s: %q", where, secret, text)
			}
		}
		if strings.ContainsAny(text, "\x1b\a\r\u009b\u202e") || !utf8.ValidString(text) {
			t.Errorf("%s holds control characters: %q", where, text)
		}
	}
	for _, want := range []string{"started with [masked ", "half a line, then [masked ", " and more\n", "my own: [masked]\n", "] after the key\n", `red \x1b]0;title\a \x1b[2J\u202e\xff`, "] next\n", "\\u009b31m日本語\tü\n", "Password for [masked "} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is missing in %q", want, raw)
		}
	}
}

// A log that an older version wrote is masked when it is shown.
func TestOldLogsAreMaskedWhenShown(t *testing.T) {
	t.Parallel()
	token, dir := newToken(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.log"), []byte("use "+token+"\n\x1b[2Jdone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := NewLogReader(dir, "s").ReadLast(10)
	if err != nil || len(lines) != 2 || strings.Contains(lines[0].Text, token) || lines[1].String() != `\x1b[2Jdone` {
		t.Errorf("%q, %v", lines, err)
	}
}

// A private key without an end does not suppress the rest of a server's log.
func TestUnendedKeyIsMasked(t *testing.T) {
	t.Parallel()
	m := lineMasker{}
	m.addBytes([]byte("-----BEGIN PRIVATE" + " KEY-----\nabc\n"))
	said := ""
	for range 2 * maxKey / 10 {
		said += m.addBytes([]byte("a line of\n"))
	}
	if len(said) < maxKey/2 {
		t.Errorf("%d bytes are kept", len(said))
	}
	if got := m.addBytes([]byte(strings.Repeat("x", maxLogLine+1))); len(got) != maxLogLine+1 {
		t.Errorf("a line without an end: %d bytes", len(got))
	}
}
