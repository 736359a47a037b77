// Command judge learns the weights of internal/judge, and says how well they do on what
// they were not learned from.
//
//	go run ./bench/judge --shared DIR [--out internal/judge/model.bin]
//
// It learns from the labelled definitions below DIR (package corpora) and from the
// texts of seeds.txt. The same input gives the same file, byte for byte. The
// sources and their licences: docker/mcp-registry, dongsenzhang/MSB,
// smart-mcp-proxy/mcpproxy-go, mcp-tool-shop/tool-scan, mcphub, MCP-Zero (MIT),
// icip-cas/LiveMCPBench, cisco-ai-defense/mcp-scanner, Toucan (Apache-2.0).
// Nothing of their texts can be read from the weights.
//
// For each corpus that holds attacks it learns anew without that corpus and
// without a fifth of the honest servers, sets the thresholds by another fifth, and
// prints what is found of the one and wrongly found of the other.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/judge"
)

func main() {
	shared := flag.String("shared", cmp.Or(os.Getenv("MCPPROXY_SHARED"), "../shared"), "where the corpora are")
	out := flag.String("out", "", "the file to write the weights to")
	unseen := flag.String("unseen", "", "a file of further labelled definitions, to be judged only")
	verbose := flag.Bool("v", false, "print what is wrong")
	flag.Parse()
	if err := run(*shared, *out, *unseen, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func run(shared, out, unseen string, verbose bool) error {
	samples, err := corpora.Read(shared)
	if err != nil {
		return err
	}
	t, err := newTraining(samples)
	if err != nil {
		return err
	}
	var more []corpora.Sample
	if unseen != "" {
		if more, err = corpora.Lines(unseen); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "left out\tattacks\treview\tblock\tby the judge\twithout it\thonest\treview\tblock\tby the judge\twithout it\t")
	all := tallies{}
	for k, set := range t.sets() {
		attacks, honest := t.leftOut(set, uint32(k), verbose)
		fmt.Fprintf(w, "%s\t%v\t%v\t\n", set, attacks, honest.sum())
		all.join(honest)
	}
	for _, corpus := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(w, "honest of %s\t\t\t\t\t\t%v\t\n", corpus, all[corpus])
	}
	m := t.final()
	if unseen != "" {
		attacks, honest := further(more, m, verbose)
		fmt.Fprintf(w, "%s\t%v\t%v\t\n", filepath.Base(unseen), attacks, honest)
	}
	w.Flush()
	fmt.Printf("thresholds: review %d, agree %d, in 1/%d\n", m.Review, m.Agree, judge.Unit)
	if out == "" {
		return nil
	}
	return os.WriteFile(out, m.Bytes(), 0o644)
}
