package gateway

import (
	"context"
	"strings"
	"testing"

	"mcpproxy/internal/config"
)

func TestToolFilters(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Servers[0].DisabledTools = []string{"destroys"} }, readsTool, destroysTool)
	for _, c := range []struct {
		filter ToolFilter
		want   string
	}{
		{ToolFilter{}, "reads destroys"},
		{ToolFilter{Server: "s"}, "reads destroys"},
		{ToolFilter{Server: "other"}, ""},
		{ToolFilter{Operation: "read"}, "reads"},
		{ToolFilter{CallWith: "call_tool_destructive"}, "destroys"},
		{ToolFilter{CallWith: "call_tool_read", Operation: "read"}, "reads"},
		{ToolFilter{CallWith: "call_tool_read", Operation: "write"}, ""}, // no tool has two
		// Callable is a word of the filter, though tools that can be called have no status.
		{ToolFilter{Status: "callable"}, "reads"},
		{ToolFilter{Status: "disabled_by_config"}, "destroys"},
	} {
		found, err := w.gateway.Tools(context.Background(), Caller{}, c.filter)
		var names []string
		for _, v := range found.Tools {
			names = append(names, v.Tool)
		}
		if got := strings.Join(names, " "); err != nil || got != c.want || found.Total != len(names) {
			t.Errorf("%+v: %q of %d, %v, want %q", c.filter, got, found.Total, err, c.want)
		}
	}
}
