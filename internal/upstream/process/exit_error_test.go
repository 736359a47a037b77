//go:build unix

package process

import (
	"strings"
	"testing"
)

func TestDecisiveLogLine(t *testing.T) {
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
		"npm error code E404\nnpm error 404 Not Found - GET https://r.example/@x%2fy - Not found\nnpm error 404\nnpm error 404  '@x/y@*' is not in this registry.\nnpm error 404\n" +
			"npm error 404 Note that you can also install from a\nnpm error 404 tarball, folder, http url, or git folder.\nnpm error A complete log of this run can be found in: /root/.npm/x.log\n": "npm error 404 Not Found - GET https://r.example/@x%2fy - Not found: '@x/y@*' is not in this registry.",
		"npm warn deprecated x\nnpm ERR! code E404\nnpm ERR! 404 Not Found - GET https://r.example/y - Not found\nnpm ERR! 404 \nnpm ERR! 404  The requested resource 'y@*' could not be found or you do not have permission to access it.\nnpm ERR! A complete log of this run can be found in:\nnpm ERR!     /root/x.log\n":        "npm ERR! 404 Not Found - GET https://r.example/y - Not found: The requested resource 'y@*' could not be found or you do not have permission to access it.",
		"npm error code ENOTFOUND\nnpm error syscall getaddrinfo\nnpm error errno ENOTFOUND\nnpm error network request to https://r.example/y failed, reason: getaddrinfo ENOTFOUND r.example\nnpm error network This is a problem related to network connectivity.\nnpm error A complete log of this run can be found in: /x.log\n": "npm error network request to https://r.example/y failed, reason: getaddrinfo ENOTFOUND r.example",
		"npm error code ETARGET\nnpm error notarget No matching version found for y@9.\nnpm error notarget In most cases you or one of your dependencies\n":                                                                                                                                                                          "npm error notarget No matching version found for y@9.",
		"npm error could not determine executable to run\nnpm error A complete log of this run can be found in: /x.log\n":                                                                                                                                                                                                            "npm error could not determine executable to run",
		"starting\nCALENDAR_TOKEN is not set\nUsage: calendar-mcp [options]\n  --help  this\nexiting...\n":                                                                                                                                                                                                                           "CALENDAR_TOKEN is not set",
		"Missing required environment variable: API_KEY\n\nSee https://docs.example/setup\n":                                                                                                                                                                                                                                         "Missing required environment variable: API_KEY",
		"panic: TOKEN is required\n\ngoroutine 1 [running]:\nmain.main()\n\t/x/main.go:3 +0x18\nexit status 2\n":                                                                                                                                                                                                                     "panic: TOKEN is required",
		"thread 'main' panicked at src/main.rs:3:5:\nTOKEN is not set\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n":                                                                                                                                                                              "TOKEN is not set",
		"Traceback (most recent call last):\n  File \"x.py\", line 1\nModuleNotFoundError: No module named 'mcp'\n":                                                                                                                                                                                                                  "ModuleNotFoundError: No module named 'mcp'",
		"docker: Error response from daemon: pull access denied for x.\nSee 'docker run --help'.\n":                                                                                                                                                                                                                                  "docker: Error response from daemon: pull access denied for x.",
		"Error: listen EADDRINUSE: address already in use :::3000\nShutting down\nBye!\n":                                                                                                                                                                                                                                            "Error: listen EADDRINUSE: address already in use :::3000",
		"WARN the error reporter is off\nlistening\n": "listening",
		strings.Repeat("x", 1000):                     strings.Repeat("x", maxLastLine) + "…",
	} {
		var l stderrTail
		for _, b := range []byte(text) {
			l.addBytes([]byte{b})
		}
		if got := l.causeLine(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var l stderrTail
	for range 100 {
		l.addBytes([]byte(strings.Repeat("y", 3<<10) + "\n"))
	}
	l.addBytes([]byte("end"))
	if got := l.causeLine(); got != "end" || len(l.tail) > 2*maxLastLines {
		t.Errorf("%q of %d bytes", got, len(l.tail))
	}
}
