//go:build unix

package process

import (
	"strings"
	"testing"
)

func TestTheTellingLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "",
		"one\ntwo\n\n  \n":  "two",
		"half a line":       "half a line",
		"bell \a\x9b\u202e": `bell \x07` + "\uFFFD" + `\u{202e}`,
		"/x/y.js:1\nthrow 1\n\nError: Cannot find module 'x'\n    at a (b)\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v22.1.0\n": "Error: Cannot find module 'x'",
		"node:1\nTypeError: x is not a function\n    at a\n\nNode.js v20\n":                                                                          "TypeError: x is not a function",
		"npm error code E404\nnpm error 404 Not Found\nnpm error A complete log of this run can be found in: /root/x.log\n":                          "npm error 404 Not Found",
		"Error: fetch failed\n    at a (b)\n    at async main\n":                                                                                     "Error: fetch failed",
		"only this\nNode.js v20\n": "only this",
		strings.Repeat("x", 1000):  strings.Repeat("x", maxLastLine) + "…",
	} {
		var l lastLines
		for _, b := range []byte(text) {
			l.add([]byte{b})
		}
		if got := l.telling(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var l lastLines
	for range 100 {
		l.add([]byte(strings.Repeat("y", 3<<10) + "\n"))
	}
	l.add([]byte("end"))
	if got := l.telling(); got != "end" || len(l.tail) > 2*maxLastLines {
		t.Errorf("%q of %d bytes", got, len(l.tail))
	}
}
