package clients

import (
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/testutil/cputime"
)

// TestLargeTexts checks that a text that is designed to take long is parsed, or rejected, quickly.
func TestLargeTexts(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, text := range map[string]string{
		"arguments":    `{"mcpServers": {"a": {"command": "x", "args": [` + strings.Repeat(`"${A}",`, 20_000) + `]}}}`,
		"tools":        `{"mcpServers": {"a": {"command": "x", "tools": [` + strings.Repeat(`"a",`, 100_000) + `"b"], "excludeTools": [` + strings.Repeat(`"a",`, 100_000) + `]}}}`,
		"TOML":         "[mcp_servers." + long + "]\n" + numberedLines("a%d = 1\n", maxKeys/2),
		"TOML tables":  numberedLines("[mcp_servers.a%d.env]\n", maxKeys/4),
		"YAML":         "extensions:\n" + numberedLines("  a%d: {cmd: x}\n", 4_000),
		"YAML list":    "mcpServers:\n" + strings.Repeat("- a\n", 60_000),
		"YAML long":    "extensions: " + long,
		"YAML anchors": "extensions: " + strings.Repeat("&a ", 50_000) + "x",
		"YAML tags":    "extensions: " + strings.Repeat("!a ", 50_000) + "x",
		"YAML quotes":  "extensions: " + strings.Repeat("'", 100_001),
		"YAML keys":    "extensions: " + strings.Repeat("? ", 50_000) + "x",
		"YAML flow":    "a: {" + strings.Repeat("a: b, ", 40_000) + "}",
	} {
		start := cputime.Process()
		_, err := parseServers([]byte(text))
		if took := cputime.Process() - start; took > 20*time.Second {
			t.Errorf("%s takes %v: %v", name, took, err)
		} else {
			t.Logf("%s takes %v: %.80v", name, took, err)
		}
	}
}
