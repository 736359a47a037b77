package classify

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/testutil/cputime"
)

// BenchmarkTexts classifies texts of 4 KB, one at a time. It reports the CPU time of the slowest of a hundred runs,
// and the slowest of the best runs of each text.
func BenchmarkTexts(b *testing.B) {
	dir := os.Getenv("MCPPROXY_LANES")
	if dir == "" {
		b.Skip("MCPPROXY_LANES is not set to a directory with third-party statements and command lines")
	}
	read := func(paths []string) (texts, statements []string) {
		var all strings.Builder
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			all.Write(text)
		}
		for _, s := range strings.SplitAfter(all.String(), ";\n") {
			if len(s) <= 4096 {
				statements = append(statements, s)
			}
		}
		for s := all.String(); len(s) >= 4096; s = s[4096:] {
			texts = append(texts, s[:4096])
		}
		return texts, statements
	}
	sql, err := filepath.Glob(filepath.Join(dir, "pganalyze+libpg_query", "test", "sql", "postgres_regress", "*.sql"))
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, texts []string, judge func(string) verdict) {
		b.Run(name, func(b *testing.B) {
			if len(texts) == 0 {
				b.Skip("there are no texts")
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took []time.Duration
			best := slices.Repeat([]time.Duration{time.Hour}, len(texts))
			for i := 0; b.Loop(); i++ {
				began := cputime.Thread()
				judge(texts[i%len(texts)])
				took = append(took, cputime.Thread()-began)
				best[i%len(texts)] = min(best[i%len(texts)], took[i])
			}
			for what, took := range map[string][]time.Duration{"": took, "best-": best[:min(len(best), len(took))]} {
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), what+"p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), what+"p99-µs")
			}
		})
	}
	texts, statements := read(sql)
	run("sql, 4 KB of a file", texts, classifySQL)
	run("sql, statements", statements, classifySQL)
	everyday, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(string(everyday), "\n")
	var shell, most, one, words []string
	for i := range lines {
		read := ""
		for at := i; !hasTooManyCommands(read + lines[at%len(lines)] + "\n"); at++ {
			read += lines[at%len(lines)] + "\n"
		}
		most = append(most, read)
		var text strings.Builder
		for at := i; text.Len() < 4096; at++ {
			text.WriteString(lines[at%len(lines)] + "\n")
		}
		shell, one = append(shell, text.String()), append(one, "git commit -m '"+strings.Repeat("x ", 2040)+"'")
		words = append(words, "cat"+strings.Repeat(` "$x"/src/main.go`, maxWords/3-1))
	}
	run("shell, 200 lines", shell, classifyShell)
	run("shell, as many commands as are read", most, classifyShell)
	run("shell, one command", one, classifyShell)
	run("shell, as many words as are read", words, classifyShell)
	runs := []string{"sudo" + strings.Repeat(" find", maxWords-3), "sudo" + strings.Repeat(" sort -k1", maxWords/2-2), "sudo" + strings.Repeat(" env", maxWords-3), "ssh" + strings.Repeat(" 'ls; ls'", maxWords/3-2)}
	run("shell, words of a command that runs another", runs, classifyShell)
	run("shell, everyday lines", lines[:len(lines)-1], classifyShell)
}
