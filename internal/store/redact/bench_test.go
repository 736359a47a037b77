package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/testutil/cputime"
)

// cleanArguments are arguments of about 1 KB without a credential.
var cleanArguments = []byte(`{"owner":"octocat","repo":"hello-world","title":"Search returns results in the wrong order",` +
	`"body":"Steps to reproduce:\n1. Open the search page and type \"annual report\".\n2. Sort by date.\n3. The newest document is last, see https://example.com/docs/search?q=annual+report&sort=date.\n\nExpected: newest first. This started with release 2.14.3 (commit 9f86d081884c7d65).",` +
	`"labels":["bug","search","needs-triage"],"assignees":["monalisa","hubot"],"milestone":12,"state":"open","draft":false,` +
	`"metadata":{"created_at":"2026-01-15T10:30:00Z","updated_at":"2026-01-15T10:31:12Z","priority":2.5,"estimate":null,"session":"7c9e6679-7425-40de-944b-e07fc1f90ae7",` +
	`"files":["src/search/index.go","src/search/index_test.go","docs/search.md"],"author":{"name":"Ann Example","email":"ann@example.com","id":583231}},` +
	`"description":"A longer description of what the person wanted to do, in ordinary words, as models like to write them.","page":1,"per_page":30}`)

func benchmarkJSON(b *testing.B, in []byte) {
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		redact.JSON(in)
	}
}

func BenchmarkJSON(b *testing.B) {
	b.Run("clean 1 KB", func(b *testing.B) { benchmarkJSON(b, cleanArguments) })
	b.Run("clean 64 KB", func(b *testing.B) { benchmarkJSON(b, resultOf(string(bytes.Repeat(cleanArguments, 60)))) })
	b.Run("clean text 64 KB", func(b *testing.B) {
		benchmarkJSON(b, resultOf(strings.Repeat("The quick brown fox jumps over the lazy dog, and nothing else happens.\n", 930)))
	})
	b.Run("image 64 KB", func(b *testing.B) {
		benchmarkJSON(b, resultOf(strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAABQ/8AFf+bX", 1850)))
	})
	b.Run("text in base64 64 KB", func(b *testing.B) {
		benchmarkJSON(b, resultOf(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog, and nothing else happens.\n"), 690))))
	})
	b.Run("hashes 64 KB", func(b *testing.B) {
		benchmarkJSON(b, resultOf(strings.Repeat("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 a.go\n", 900)))
	})
	b.Run("suspicious but clean 64 KB", func(b *testing.B) {
		benchmarkJSON(b, resultOf(strings.Repeat("password: string, required. The token is sent in a header.\n", 1100)))
	})
	b.Run("one secret in 1 KB", func(b *testing.B) {
		benchmarkJSON(b, bytes.Replace(cleanArguments, []byte("octocat"), []byte(github), 1))
	})
	b.Run("a secret in every KB of 64", func(b *testing.B) {
		benchmarkJSON(b, resultOf(strings.Repeat(strings.Replace(string(cleanArguments), "octocat", github, 1), 60)))
	})
}

func resultOf(text string) []byte {
	return []byte(`{"content":[{"type":"text","text":` + quoteJSON(text) + `}]}`)
}

// TestCleanCostsNothing checks that a text without credentials is returned as the same slice, without allocations.
func TestCleanCostsNothing(t *testing.T) {
	for name, in := range map[string][]byte{"arguments": cleanArguments, "result": resultOf(string(cleanArguments))} {
		if n := testing.AllocsPerRun(100, func() { redact.JSON(in) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if got := redact.JSON(in); &got[0] != &in[0] {
			t.Errorf("%s: got a copy: %s", name, got)
		}
	}
}

// TestLinear checks that the worst inputs take about eight times as long when they are eight times as large, not
// sixty-four times.
func TestLinear(t *testing.T) {
	const size, factor = 4 << 10, 8
	took := func(text string) time.Duration {
		in := resultOf(text)
		best := time.Hour
		for range 3 {
			start := cputime.Thread()
			redact.JSON(in)
			redact.Text(text)
			best = min(best, cputime.Thread()-start)
		}
		return best
	}
	for name, piece := range map[string]string{
		"prefixes": "sk-", "prefixes of JWTs": "eyJ", "tokens almost": "ghp_abcdefghijklmnopqrstuvwxyz ", "operators": "=", "names": "token=", "names in quotes": "'token':'",
		"open quotes": "token=\"", "dashes": "--", "flags": "--token ", "URLs": "://", "hosts": "://a", "signs": "://@", "keys": "-----BEGIN PRIVATE KEY----\n",
		"backslashes": "\\\\", "escapes": `\\u0067`, "brackets": "]", "spaces": " ", "colons and spaces": ": ", "masks": "[masked ", "digits": "1", "times": "12:34:56.", "Bearer": "Bearer ",
		"long word": "abcdefgh", "M": "M.", "cookies": "cookie: ", "escaped quotes": `\\\"token\\\":`, "tags": "<token>", "base64": "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZy4g", "base64 and signs": "VGhlIHF1aWNrIGJyb3duIGZveC+/", "lines of base64": strings.Repeat("VGhl", 16) + "\n", "ends of base64": "VGhlIHF1aWNrIGJyb3duIGZveC==",
	} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var small, large time.Duration
			for range 5 { // a shared CPU is slow occasionally; code that is not linear is slow every time
				small = took(strings.Repeat(piece, size/len(piece)))
				large = took(strings.Repeat(piece, factor*size/len(piece)))
				if large <= 4*factor*small+5*time.Millisecond {
					return
				}
			}
			t.Errorf("%v for %d KB, %v for %d KB", small, size>>10, large, factor*size>>10)
		})
	}
}

// TestRealTools checks that the tool definitions of real servers do not change, because they contain no credentials.
func TestRealTools(t *testing.T) {
	shared := os.Getenv("MCPPROXY_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	files, err := filepath.Glob(filepath.Join(shared, "real-servers", "*"))
	if err != nil || len(files) == 0 {
		t.Skipf("no real servers in %s", shared)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			if !json.Valid(line) {
				continue
			}
			if got := redact.JSON(line); !bytes.Equal(got, line) {
				found := mask.FindAllIndex(got, 3)
				for _, f := range found {
					t.Errorf("%s: …%s…", filepath.Base(file), got[max(0, f[0]-80):min(len(got), f[1]+40)])
				}
			}
		}
	}
}
