package ops

import (
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/store/activity"
)

// usageByTool maps server and tool names to their usage.
type usageByTool map[[2]string]activity.ToolUsage

func (u usageByTool) usageOf(t *catalog.Tool) ToolUsage {
	use := u[[2]string{t.ID.Server, t.ID.Tool}]
	return ToolUsage{Calls: use.Calls, LastUsed: timeOrNil(use.Last)}
}

// recent is the age up to which a call counts as recent.
const recent = 30 * 24 * time.Hour

// recency classifies the last call of a tool: recent (after lately), earlier or never.
func (u usageByTool) recency(t *catalog.Tool, lately time.Time) string {
	switch use := u[[2]string{t.ID.Server, t.ID.Tool}]; {
	case use.Calls == 0:
		return "never"
	case use.Last.Before(lately):
		return "earlier"
	default:
		return "recent"
	}
}
