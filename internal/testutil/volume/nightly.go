package volume

import (
	"os"
	"slices"
	"strings"
)

const nightlyVar = "MCPPROXY_TEST_NIGHTLY"

// Topics of the nightly run.
const (
	Browser  = "browser"  // every page of the web UI in a browser
	Clients  = "clients"  // MCP clients as their vendors publish them
	Peers    = "peers"    // MCP servers and SDKs of third parties, the MCP Inspector
	Packages = "packages" // packages and services of operating systems
	Oracles  = "oracles"  // programs of others that judge the same input
)

// CoversTopic reports whether this run executes the tests of a topic.
func CoversTopic(topic string) bool {
	topics := strings.Split(os.Getenv(nightlyVar), ",")
	return slices.Contains(topics, topic) || slices.Contains(topics, "all")
}

// Skipper is the part of testing.TB that Nightly and Serial need.
type Skipper interface {
	Helper()
	Skipf(format string, args ...any)
}

// SkipUnlessNightly skips a test unless this run covers the topic.
func SkipUnlessNightly(t Skipper, topic string) {
	t.Helper()
	if !CoversTopic(topic) {
		t.Skipf("runs nightly: set %s=%s, or all", nightlyVar, topic)
	}
}
