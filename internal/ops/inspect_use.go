package ops

import (
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/store/activity"
)

// toolUse is how tools were called, by server and tool.
type toolUse map[[2]string]activity.Use

func (u toolUse) of(t *catalog.Tool) Used {
	use := u[[2]string{t.ID.Server, t.ID.Tool}]
	return Used{Calls: use.Calls, LastUsed: whenSet(use.Last)}
}

// recent is how long a call counts as recent.
const recent = 30 * 24 * time.Hour

// when returns when a tool was called last: recent, that is since lately, earlier, or never.
func (u toolUse) when(t *catalog.Tool, lately time.Time) string {
	switch use := u[[2]string{t.ID.Server, t.ID.Tool}]; {
	case use.Calls == 0:
		return "never"
	case use.Last.Before(lately):
		return "earlier"
	default:
		return "recent"
	}
}
