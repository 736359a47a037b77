package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"mcpproxy/internal/neighbours"
	"mcpproxy/internal/tool"
)

func benchAcross(o options) error {
	samples, err := readSamples(o.shared)
	if err != nil {
		return err
	}
	type server struct {
		name  string
		tools []tool.Definition
	}
	by := map[string]*server{}
	var all []*server
	var malicious []sample
	for _, s := range samples {
		if s.malicious {
			malicious = append(malicious, s)
			continue
		}
		id := s.corpus + "/" + s.server
		if by[id] == nil {
			by[id] = &server{name: s.server}
			all = append(all, by[id])
		}
		if !slices.ContainsFunc(by[id].tools, func(d tool.Definition) bool { return d.ID.Tool == s.definition.ID.Tool }) {
			by[id].tools = append(by[id].tools, s.definition)
		}
	}
	names := func(s *server) (n []string) {
		for _, d := range s.tools {
			n = append(n, d.ID.Tool)
		}
		return n
	}
	x := neighbours.New()
	for i, s := range all {
		x.Set(fmt.Sprintf("%s#%d", s.name, i), names(s))
	}
	flagged, tools := 0, 0
	start := time.Now()
	for i, s := range all {
		for _, d := range s.tools {
			tools++

			if f := x.Findings(fmt.Sprintf("%s#%d", s.name, i), d.ID.Tool, tool.KindTool, d.Raw); len(f) > 0 {
				flagged++
				if o.verbose {
					fmt.Println(s.name, d.ID.Tool, f[0].Path, f[0].Excerpt, f[0].Reason)
				}
			}
		}
	}
	fmt.Println("all at once:", len(all), "servers", tools, "tools", flagged, "flagged", time.Since(start)/time.Duration(tools))
	r := rand.New(rand.NewPCG(1, 2))
	flagged, tools = 0, 0
	for range 300 {
		x := neighbours.New()
		some := r.Perm(len(all))[:20]
		for _, i := range some {
			x.Set(fmt.Sprintf("%s#%d", all[i].name, i), names(all[i]))
		}
		for _, i := range some {
			for _, d := range all[i].tools {
				tools++
				if len(x.Findings(fmt.Sprintf("%s#%d", all[i].name, i), d.ID.Tool, tool.KindTool, d.Raw)) > 0 {
					flagged++
				}
			}
		}
	}
	fmt.Println("300 installs:", tools, "tools", flagged, "flagged")
	x = neighbours.New()
	for i, s := range all {
		x.Set(fmt.Sprintf("%s#%d", s.name, i), names(s))
	}
	n := 0
	for _, m := range malicious {
		if f := x.Findings("evil", "x", tool.KindTool, m.definition.Raw); len(f) > 0 {
			n++
			if o.verbose {
				fmt.Println("MAL", m.corpus, m.id, m.technique, m.definition.ID.Tool, f[0].Path, f[0].Excerpt, f[0].Reason)
			}
		}
	}
	fmt.Println("malicious beside all:", len(malicious), n)
	return nil
}

var _ = filepath.Base
