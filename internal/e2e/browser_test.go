package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/testutil/volume"
)

// browserPatience is the time limit for one file of browser tests.
const browserPatience = 10 * time.Minute

// inBrowsers is the number of files that run at the same time. A browser uses a processor, while most other tests wait.
const inBrowsers = 2

// alwaysInBrowser lists the files that run every time. They sign in, show every page and state, and decide about held
// calls. After a change of the web UI or of REST, all files run.
var alwaysInBrowser = []string{"ask", "budget", "elsewhere", "fits", "signin"}

// TestBrowser runs the tests of the web UI in ui/test/browser, in a real browser and against the real binary. Each file
// is one subtest. To run one file: -run TestBrowser//overview.
func TestBrowser(t *testing.T) {
	t.Parallel()
	ui, err := filepath.Abs(filepath.Join("..", "..", "ui"))
	if err != nil {
		t.Fatal(err)
	}
	node, chromium := browserTools(t, ui)
	files, err := filepath.Glob(filepath.Join(ui, "test", "browser", "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	all := volume.CoversTopic(volume.Browser) || strings.Contains(flag.Lookup("test.run").Value.String(), "TestBrowser")
	next := make(chan string, len(files))
	for _, file := range files {
		if all || slices.Contains(alwaysInBrowser, fileTopic(file)) {
			next <- file
		}
	}
	close(next)
	for n := range inBrowsers {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Parallel()
			for file := range next {
				t.Run(fileTopic(file), func(t *testing.T) {
					testInBrowser(t, node, chromium, ui, file)
				})
			}
		})
	}
}

func fileTopic(path string) string { return strings.TrimSuffix(filepath.Base(path), ".test.mjs") }

func testInBrowser(t *testing.T, node, chromium, ui, file string) {
	ctx, cancel := context.WithTimeout(context.Background(), browserPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "--test", "--test-reporter=spec", file)
	cmd.Dir = ui
	cmd.Env = append(os.Environ(), "MCPPROXY_BIN="+binary, "CHROMIUM="+chromium, "TMPDIR="+t.TempDir())
	cmd.WaitDelay = patience
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// browserTools returns the paths of node and Chromium. If they or the packages of the UI are missing, it skips the
// test, or fails it in CI.
func browserTools(t *testing.T, ui string) (node, chromium string) {
	t.Helper()
	missing := func(what, remedy string) {
		t.Helper()
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is required in CI (%s)", what, remedy)
		}
		t.Skipf("%s is not installed (%s)", what, remedy)
	}
	if _, err := os.Stat(filepath.Join(ui, "node_modules", "playwright-core")); err != nil {
		missing("playwright-core", "npm ci --prefix ui")
	}
	own, _ := filepath.Abs(filepath.Join("..", "..", ".ci", "npm", "node_modules", "node", "bin", "node"))
	if node = first(own, "node"); node == "" {
		missing("node", "node 20 or later on the path, or npm install --prefix .ci/npm")
	}
	if chromium = first(os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"); chromium == "" {
		missing("Chromium", "apt-get install chromium, or its path in CHROMIUM")
	}
	return node, chromium
}

// first returns the path of the first of these commands that exists, or "".
func first(commands ...string) string {
	for _, c := range commands {
		if path, err := exec.LookPath(c); err == nil && c != "" {
			return path
		}
	}
	return ""
}
