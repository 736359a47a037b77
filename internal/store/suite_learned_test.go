package store_test

import (
	"fmt"
	"testing"
	"time"

	"mcpproxy/internal/store"
)

// testLearnedSessions checks that needs survive a restart with their first time, and end with their launch.
func testLearnedSessions(t *testing.T, open storeOpener) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx := t.Context()
	save := func(server, launch, need string, since int64) {
		t.Helper()
		if err := s.SaveLearnedSession(ctx, store.LearnedSession{Server: server, Launch: []byte(launch), Need: need, Since: time.UnixMicro(since)}); err != nil {
			t.Error(err)
		}
	}
	has := func(want string) {
		t.Helper()
		all, err := s.LearnedSessions(ctx)
		got := ""
		for _, l := range all {
			got += fmt.Sprintf("%s %s %s %d\n", l.Server, l.Launch, l.Need, l.Since.UnixMicro())
		}
		if err != nil || got != want {
			t.Errorf("%v, got\n%swant\n%s", err, got, want)
		}
	}
	has("")
	save("b", "1", "roots", 10)
	save("a", "1", "sampling", 20)
	save("a", "1", "elicitation", 30)
	save("a", "1", "sampling", 40)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	has("a 1 elicitation 30\na 1 sampling 20\nb 1 roots 10\n")
	save("a", "2", "roots", 50)
	has("a 2 roots 50\nb 1 roots 10\n")
}
