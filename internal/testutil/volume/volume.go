// Package volume sets how much work a test does and which random seed it uses.
//
// Some tests prove something by number: thousands of calls, mutations or random walks. A landing
// run executes a small number of them with a fixed seed, so that it is quick and repeatable. The
// nightly run sets three variables:
//
//   - MCPPROXY_TEST_VOLUME=full runs every test at its full number, except under the race
//     detector, which is about ten times slower and reports nothing new about a single goroutine.
//   - MCPPROXY_TEST_SEED=random takes a new seed for each test. A number repeats a run.
//   - MCPPROXY_TEST_NIGHTLY=all also runs tests that need third-party programs. A comma-separated
//     list of topics, such as clients,peers, runs the tests of these topics.
//
// A test logs the seed it used as a command that can be pasted. Only tests import this package.
package volume

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
)

const (
	volumeVar = "MCPPROXY_TEST_VOLUME"
	seedVar   = "MCPPROXY_TEST_SEED"
)

// SeedTest is the part of testing.TB that Seed needs.
type SeedTest interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// IsFull reports whether tests run at their full number.
func IsFull() bool { return os.Getenv(volumeVar) == "full" && !RaceDetector }

// FullOrQuick returns full in a full run, and quick otherwise.
func FullOrQuick(full, quick int) int {
	if IsFull() {
		return full
	}
	return quick
}

// SkipUnderRace skips a test of a single goroutine under the race detector.
func SkipUnderRace(t Skipper) {
	t.Helper()
	if RaceDetector {
		t.Skipf("runs a single goroutine: the race detector reports nothing new")
	}
}

// Seed returns the seed of a test's random values: fixed, unless MCPPROXY_TEST_SEED says otherwise.
// It logs the command that repeats the run when the test fails or runs with -v.
func Seed(t SeedTest, fixed uint64) uint64 {
	t.Helper()
	seed := fixed
	switch given := os.Getenv(seedVar); given {
	case "":
	case "random":
		seed = rand.Uint64()
	default:
		n, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q: want a number or random", seedVar, given)
		}
		seed = n
	}
	t.Logf("to repeat: %s=%d go test -run '^%s$'", seedVar, seed, t.Name())
	return seed
}

// ConfigureRapid sets the seed and the number of checks of package rapid. Call it in TestMain. Flags on the
// command line win, because they are parsed later. A failing property prints its own seed.
func ConfigureRapid() {
	set := func(name, value string) {
		if f := flag.Lookup(name); f != nil {
			_ = f.Value.Set(value) // a constant of the flag's type
		}
	}
	set("rapid.checks", fmt.Sprint(FullOrQuick(100, 25)))
	if os.Getenv(seedVar) == "" {
		set("rapid.seed", "1")
	} else if n, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64); err == nil {
		set("rapid.seed", fmt.Sprint(n))
	}
}
