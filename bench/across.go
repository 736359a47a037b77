package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
)

// installedServer is a server that is installed together with others.
type installedServer struct {
	name  string
	tools []tool.Definition
}

// Installations that are simulated, and the servers in each.
const (
	installations = 300
	inEach        = 20
)

// benchCrossToolFindings prints two rates: honest tools that are flagged because their definition gives instructions about
// tools of other servers, and malicious tools that this check finds.
func benchCrossToolFindings(o options) error {
	samples, err := corpora.ReadAll(o.shared)
	if err != nil {
		return err
	}
	servers, malicious := splitHonestAndMalicious(samples)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "honest servers\ttools\tflagged\t\tby rule\t")
	random, found := rand.New(rand.NewPCG(1, 2)), crossFindingCounts{}
	for range installations {
		var some []installedServer
		for _, i := range random.Perm(len(servers))[:inEach] {
			some = append(some, servers[i])
		}
		found.countFindings(some, o.verbose)
	}
	fmt.Fprintf(w, "%d installs of %d\t%v\t\n", installations, inEach, &found)
	found = crossFindingCounts{}
	for _, s := range servers {
		found.countFindings([]installedServer{s}, false)
	}
	fmt.Fprintf(w, "each of %d alone\t%v\t\n", len(servers), &found)
	found = crossFindingCounts{}
	found.countFindings(servers, o.verbose)
	fmt.Fprintf(w, "all %d at once\t%v\t\n", len(servers), &found)
	w.Flush()
	printMaliciousDetection(servers, malicious, o.verbose)
	return nil
}

// splitHonestAndMalicious returns the servers of the benign samples, and the other samples.
func splitHonestAndMalicious(samples []corpora.Sample) (servers []installedServer, malicious []corpora.Sample) {
	at := map[string]int{}
	for _, s := range samples {
		if s.Malicious {
			malicious = append(malicious, s)
			continue
		}
		id := s.Corpus + "/" + s.Server
		if _, there := at[id]; !there {
			at[id] = len(servers)
			servers = append(servers, installedServer{name: fmt.Sprintf("%s-%d", s.Server, len(servers))})
		}
		x := &servers[at[id]]
		if !slices.ContainsFunc(x.tools, func(d tool.Definition) bool { return d.ID.Tool == s.Definition.ID.Tool }) {
			d := s.Definition
			d.ID.Server = x.name
			x.tools = append(x.tools, d)
		}
	}
	return servers, malicious
}

func newCrossRefIndex(servers []installedServer) *scan.CrossRefIndex {
	x := scan.NewCrossRefIndex()
	for _, s := range servers {
		names := make([]string, len(s.tools))
		for i, d := range s.tools {
			names[i] = d.ID.Tool
		}
		x.SetToolNames(s.name, names)
	}
	return x
}

// crossFindingCounts counts the findings across tools.
type crossFindingCounts struct {
	tools, flagged int
	rules          map[string]int
}

// countFindings counts the findings in servers that are installed together.
func (f *crossFindingCounts) countFindings(servers []installedServer, print bool) {
	x := newCrossRefIndex(servers)
	for _, s := range servers {
		for _, d := range s.tools {
			f.tools++
			found := x.NewScannedTool(&d).CrossFindings()
			if len(found) == 0 {
				continue
			}
			f.flagged++
			if f.rules == nil {
				f.rules = map[string]int{}
			}
			f.rules[found[0].Rule]++
			if print {
				fmt.Printf("%s %s %s %s: %q: %s\n", s.name, d.ID.Tool, found[0].Rule, found[0].Path, found[0].Excerpt, found[0].Reason)
			}
		}
	}
}

func (f *crossFindingCounts) String() string {
	var rules []string
	for _, rule := range slices.Sorted(maps.Keys(f.rules)) {
		rules = append(rules, fmt.Sprintf("%s %d", rule, f.rules[rule]))
	}
	return fmt.Sprintf("%d\t%d\t%.3f %%\t%s", f.tools, f.flagged, 100*float64(f.flagged)/float64(max(1, f.tools)), strings.Join(rules, ", "))
}

// printMaliciousDetection prints how many of the malicious definitions name a tool of another server. Of these it prints how
// many are found when that server is installed too: by the check across tools alone, and by the whole scanner.
func printMaliciousDetection(servers []installedServer, malicious []corpora.Sample, print bool) {
	names := map[string]bool{}
	for _, s := range servers {
		for _, d := range s.tools {
			if n := d.ID.Tool; strings.Contains(n, "_") || n[0] >= 'a' && strings.ToLower(n) != n {
				names[d.ID.Tool] = true
			}
		}
	}
	type row struct{ all, naming, across, unknown, both int }
	rows := map[string]*row{}
	beside, alone := newCrossRefIndex(servers), scan.NewCrossRefIndex()
	for _, m := range malicious {
		r := rows[m.Corpus]
		if r == nil {
			r = &row{}
			rows[m.Corpus] = r
		}
		r.all++
		d := m.Definition
		d.ID.Server = "attacker"
		peers := map[string][]string{}
		for _, p := range m.Peers {
			peers[p.Server] = append(peers[p.Server], p.Name)
		}
		for server, tools := range peers {
			beside.SetToolNames(server, tools)
		}
		found := beside.NewScannedTool(&d).CrossFindings()
		if mentionsOtherTool(d, names, m.Peers) {
			r.naming++
			if len(found) > 0 {
				r.across++
			} else if print {
				fmt.Printf("missed: %s %s: %.500s\n", m.Corpus, m.ID, d.Raw)
			}
			if len(found) > 0 || scan.ScanDefinition(d).Verdict != scan.Clean {
				r.both++
			}
			if len(alone.NewScannedTool(&d).CrossFindings()) > 0 {
				r.unknown++
			}
		}
		for server := range peers {
			beside.RemoveServer(server)
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nmalicious\tdefinitions\tthat name a tool of another server\tfound beside it\twithout it\twith the scanner\t")
	for _, corpus := range slices.Sorted(maps.Keys(rows)) {
		r := rows[corpus]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t\n", corpus, r.all, r.naming, r.across, r.unknown, r.both)
	}
	w.Flush()
}

// mentionsOtherTool reports whether the description of a tool contains the name, with several parts, of another
// server's tool.
func mentionsOtherTool(d tool.Definition, names map[string]bool, peers []corpora.PeerTool) bool {
	words := strings.FieldsFunc(d.Description, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	return slices.ContainsFunc(words, func(word string) bool {
		return word != d.ID.Tool && (names[word] || slices.ContainsFunc(peers, func(p corpora.PeerTool) bool { return p.Name == word }))
	})
}
