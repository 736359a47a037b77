package mcpserver

import (
	"fmt"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
)

func TestSentence(t *testing.T) {
	propose, off := toolListKey{management: config.ManagePropose}, toolListKey{management: config.ManageOff}
	for _, c := range []struct {
		shown clientView
		want  string
	}{
		{clientView{off, nil}, "No server can be used yet. The user adds one with `mcpproxy upstream add`."},
		{clientView{propose, nil}, "No server can be used yet. The user adds one with `mcpproxy upstream add`; servers that you propose with upstream_servers wait for the user."},
		{clientView{off, []ops.UsableServer{{Name: "one", Listed: true, Tools: 1}}}, "The servers, with how many tools each has: one (1)."},
		{clientView{off, []ops.UsableServer{{Name: "a", Listed: true}, {Name: "b"}, {Name: "c", Listed: true, Tools: 26}, {Name: "d", Listed: true, Tools: 30}}},
			"The servers, with how many tools each has: c (26), d (30), a (0). 1 server has not listed its tools yet."},
		{clientView{off, []ops.UsableServer{{Name: "a"}, {Name: "b"}}}, "2 servers have not listed their tools yet."},
	} {
		if got := c.shown.serversSentence(map[string]int64{"c": 7, "gone": 9}); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// The list of servers has a maximum length, for any number and length of names, and says how many it leaves out.
func TestServerListIsBounded(t *testing.T) {
	for _, length := range []int{1, 10, 64} {
		var w clientView
		for n := range 1000 {
			w.servers = append(w.servers, ops.UsableServer{Name: strings.Repeat("x", length), Listed: n%2 == 0, Tools: 1000 - n})
			got := w.serversSentence(nil)
			named := strings.Count(got, "(")
			listed := n/2 + 1
			more := fmt.Sprintf(" and %d more.", listed-named)
			if len(got) > maxNamed || named == 0 || strings.Contains(got, more) != (named < listed) || strings.Contains(got, "not listed") != (n > 0) {
				t.Fatalf("%d servers: %d bytes: %s", n+1, len(got), got)
			}
			if n == 999 && len(got) < maxNamed-2*(length+40) {
				t.Errorf("%d bytes: %s", len(got), got)
			}
		}
	}
}

// A client is notified only of differences from its last list.
func TestOnlyChangesAreAnnounced(t *testing.T) {
	var k lastView
	for i, c := range []struct {
		shown clientView
		news  bool
	}{
		{clientView{}, true},
		{clientView{}, false},
		{clientView{toolListKey{management: config.ManageOff}, nil}, true},
		{clientView{toolListKey{intent: true, management: config.ManageOff}, nil}, true},
		{clientView{toolListKey{intent: true, management: config.ManageOff}, []ops.UsableServer{{Name: "a", Listed: false, Tools: 0}}}, true},
		{clientView{toolListKey{intent: true, management: config.ManageOff}, []ops.UsableServer{{Name: "a", Listed: true, Tools: 0}}}, true},
		{clientView{toolListKey{intent: true, management: config.ManageOff}, []ops.UsableServer{{Name: "a", Listed: true, Tools: 1}}}, true},
		{clientView{toolListKey{intent: true, management: config.ManageOff}, []ops.UsableServer{{Name: "a", Listed: true, Tools: 1}}}, false},
	} {
		if news := k.replaceView(c.shown); news != c.news {
			t.Errorf("%d: news %t", i, news)
		}
	}
}
