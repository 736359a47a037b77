package scan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"mcpproxy/internal/catalog/tool"
)

// Tools of real servers are hardly ever flagged, neither with 20 of these servers installed together nor with all. The
// program bench measures more.
func TestRealServers(t *testing.T) {
	by := map[string][]tool.Definition{}
	var servers []string
	for _, d := range crossRealTools(t, 1<<20) {
		if by[d.ID.Server] == nil {
			servers = append(servers, d.ID.Server)
		}
		by[d.ID.Server] = append(by[d.ID.Server], d)
	}
	flagged := func(some []string) (tools, flagged int) {
		x := NewCrossRefIndex()
		for _, s := range some {
			var names []string
			for _, d := range by[s] {
				names = append(names, d.ID.Tool)
			}
			x.SetToolNames(s, names)
		}
		for _, s := range some {
			for _, d := range by[s] {
				tools++
				if len(x.NewScannedTool(&d).CrossFindings()) > 0 {
					flagged++
				}
			}
		}
		return tools, flagged
	}
	random, tools, wrong := rand.New(rand.NewPCG(3, 4)), 0, 0
	for range 300 {
		order := random.Perm(len(servers))[:20]
		slices.Sort(order)
		var some []string
		for _, i := range order {
			some = append(some, servers[i])
		}
		all, found := flagged(some)
		tools, wrong = tools+all, wrong+found
	}
	t.Logf("300 installations of 20 servers: %d of %d tools", wrong, tools)
	if wrong*1000 > tools {
		t.Errorf("%d of %d tools are flagged", wrong, tools)
	}
	all, found := flagged(servers)
	t.Logf("all %d servers: %d of %d tools", len(servers), found, all)
	if found*300 > all {
		t.Errorf("all at once: %d of %d tools are flagged", found, all)
	}
}
