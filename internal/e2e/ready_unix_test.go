//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestReady: an instance is ready after its start when it knows the tools of its servers, or knows that it will not get them. A
// later failure of a server does not make the instance unready.
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
		eventually(t, "it waits for one server alone", func() error {
			if err = readiness(d); err != nil && strings.Contains(err.Error(), "1 server") {
				return nil
			}
			return fmt.Errorf("it says: %v", err)
		})
	}
	tell()
	awaitReady(d)
	if err := callModern(http.DefaultClient, "http://"+d.address, "once"); err != nil {
		t.Errorf("it is ready, and answers a call with %v", err)
	}

	// A server that comes later tells nothing yet.
	listing, tell = hold(other)
	defer tell()
	d.writeConfig(fmt.Sprintf(`{"mcpServers":{"m":{"url":%[1]q},"n":{"url":%[2]q},`+servers+`}}`, slow.URL, other.URL))
	<-listing
	if err := readiness(d); err != nil {
		t.Errorf("with a new server it says: %v", err)
	}

	// The tools that were known before the restart are known.
	d.stop()
	heldAgain, tellAgain := hold(slow)
	defer tellAgain()
	d.writeConfig(fmt.Sprintf(`{"mcpServers":{"m":{"url":%q}}}`, slow.URL))
	d.start()
	<-heldAgain
	awaitReady(d)
}
