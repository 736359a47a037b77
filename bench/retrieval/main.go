// Command retrieval measures how well search finds the tools that fit a request. It sends labelled requests to the product's
// own search, over a catalog made of the tools of the set. It prints recall, nDCG and MRR with the half-widths of their 95 %
// intervals.
//
//	go run ./bench/retrieval DIR...                    each folder with tools.jsonl and queries.jsonl below DIR
//	go run ./bench/retrieval -save before.json DIR...  keep the figures of every query
//	go run ./bench/retrieval -against before.json DIR  …and compare another build with them, query by query
//	go run ./bench/retrieval -learn DIR                the gain from learning from use, by cross-validation
//	go run ./bench/retrieval -choose bench/retrieval/rankings.jsonl DIR
//	                                                   the figures of each set with the ranking that is best for the other sets
//
// A line of tools.jsonl (or tools.jsonl.gz) has id, server, name, description and inputSchema. A line of queries.jsonl has id,
// query, relevant (ids of tools) and optionally grades (id → gain). Every set is searched alone. The command judges nothing;
// its test checks the figures.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	save := flag.String("save", "", "write the figures of every query to this `file`")
	against := flag.String("against", "", "compare with the figures in this `file`, query by query")
	learn := flag.Bool("learn", false, "also measure with learn_from_use, learned from the requests of other parts of a set")
	choose := flag.String("choose", "", "judge each set by the one of the rankings in this `file` that is best for the others")
	most := flag.Int("most", 0, "with -choose: look at about so many requests of a set (0: all)")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./bench/retrieval [-save file] [-against file] [-learn] DIR...\n       go run ./bench/retrieval -choose file [-most n] DIR...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *choose != "" {
		if err := runChooser(os.Stdout, flag.Args(), *choose, *most); err != nil {
			fmt.Fprintln(os.Stderr, "retrieval:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Stdout, flag.Args(), *save, *against, *learn); err != nil {
		fmt.Fprintln(os.Stderr, "retrieval:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, dirs []string, save, against string, learn bool) error {
	var before resultsBySet
	if against != "" {
		var err error
		if before, err = readResults(against); err != nil {
			return err
		}
	}
	sets, err := readSets(dirs)
	if err != nil {
		return err
	}
	now := resultsBySet{}
	for _, s := range sets {
		now[s.name] = s.measure()
	}
	printMetrics(w, sets, now)
	if before != nil {
		printDifferences(w, sets, before, now)
	}
	if learn {
		learned := resultsBySet{}
		for _, s := range sets {
			learned[s.name] = s.measureWithLearnedHabits()
		}
		fmt.Fprintln(w, "\nwith learn_from_use")
		printMetrics(w, sets, learned)
		printDifferences(w, sets, now, learned)
	}
	if save == "" {
		return nil
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return os.WriteFile(save, data, 0o600)
}

func runChooser(w io.Writer, dirs []string, file string, most int) error {
	sets, err := readSets(dirs)
	if err != nil {
		return err
	}
	c := &rankingChooser{w: w, sets: sets, maxQueries: most}
	return c.chooseFromFile(file)
}

func readResults(file string) (r resultsBySet, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s holds no figures of this program: %w", file, err)
	}
	return r, nil
}
