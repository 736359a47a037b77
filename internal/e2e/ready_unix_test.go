//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestReady: after its start, an instance is ready when it knows the tools of its servers or knows that it cannot get
// them. A later failure of a server does not make it unready.
func TestReady(t *testing.T) {
	t.Parallel()
	slow, other := startUpstream(t, noteTool), startUpstream(t, noteTool)
	hold := func(u *fakeUpstream) (asked <-chan struct{}, tell func()) {
		told, listing := make(chan struct{}), make(chan struct{}, 100)
		before := func(method string) {
			if method == "tools/list" {
				listing <- struct{}{}
				<-told
			}
		}
		u.before.Store(&before)
		return listing, func() { close(told) }
	}
	listing, tell := hold(slow)
	const servers = `"off":{"url":%[2]q,"enabled":false},"later":{"command":"/nothing/here","lazy":true},"gone":{"url":"http://127.0.0.1:1/mcp"}`
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"m":{"url":%[1]q},`+servers+`}}`, slow.URL, other.URL))
	<-listing
	if err := readiness(d); err == nil || !strings.Contains(err.Error(), "1 server") {
		eventually(t, "readyz waits for exactly one server", func() error {
			if err = readiness(d); err != nil && strings.Contains(err.Error(), "1 server") {
				return nil
			}
			return fmt.Errorf("readyz: %v", err)
		})
	}
	tell()
	awaitReady(d)
	if err := callModern(http.DefaultClient, "http://"+d.address, "once"); err != nil {
		t.Errorf("it is ready, but a call fails: %v", err)
	}

	// A new server has not listed its tools yet.
	listing, tell = hold(other)
	defer tell()
	d.writeConfig(fmt.Sprintf(`{"mcpServers":{"m":{"url":%[1]q},"n":{"url":%[2]q},`+servers+`}}`, slow.URL, other.URL))
	<-listing
	if err := readiness(d); err != nil {
		t.Errorf("with a new server: %v", err)
	}

	// The tools from before the restart are known.
	d.stop()
	heldAgain, tellAgain := hold(slow)
	defer tellAgain()
	d.writeConfig(fmt.Sprintf(`{"mcpServers":{"m":{"url":%q}}}`, slow.URL))
	d.start()
	<-heldAgain
	awaitReady(d)
}
