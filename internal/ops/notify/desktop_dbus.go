//go:build unix && !darwin

package notify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"
)

// desktop shows notifications through org.freedesktop.Notifications on the session bus.
type desktop struct{}

// busAddress returns the address of the session bus; "" if there is none. It never starts a bus.
func busAddress() string {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" {
		return address
	}
	socket := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "bus")
	if _, err := os.Stat(socket); err != nil || !filepath.IsAbs(socket) {
		return ""
	}
	return "unix:path=" + dbus.EscapeBusAddressValue(socket)
}

// isAvailable reports whether there may be a desktop session.
func (desktop) isAvailable() bool { return busAddress() != "" }

// show shows a text with the title MCPProxy.
func (desktop) show(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	bus, err := dbus.Connect(busAddress(), dbus.WithContext(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = bus.Close() }()
	err = bus.Object("org.freedesktop.Notifications", "/org/freedesktop/Notifications").CallWithContext(ctx, "org.freedesktop.Notifications.Notify", 0,
		"MCPProxy", uint32(0), "", "MCPProxy", text, []string{}, map[string]dbus.Variant{}, int32(-1)).Err
	var answer dbus.Error
	if errors.As(err, &answer) && answer.Name == "org.freedesktop.DBus.Error.ServiceUnknown" {
		return errNoDesktop // a session without a desktop has a bus, too
	}
	return err
}
