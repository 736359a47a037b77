//go:build darwin || windows

package notify

import (
	"context"

	"github.com/gen2brain/beeep"
)

// desktop shows notifications in the notification centre of the system.
type desktop struct{}

func (desktop) isAvailable() bool { return true }

// show shows a text with the title MCPProxy.
func (desktop) show(_ context.Context, text string) error {
	beeep.AppName = "MCPProxy"
	return beeep.Notify("MCPProxy", text, "")
}
