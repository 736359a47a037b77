// Command judge trains the weights of internal/catalog/scan, and prints their quality on texts that were not used for
// training.
//
//	go run ./bench/judge --shared DIR [--out internal/catalog/scan/model.bin] [FILE...]
//
// It trains on the labeled definitions below DIR (package corpora), on those written by hand (written.jsonl and the test data of
// scan) and on the texts of seeds.txt. Run it in the root of the repository. The same input gives the same file, byte for byte. Sources and licences are in internal/catalog/scan/model.md. The weights reveal nothing of the
// texts.
//
// For each corpus that contains attacks, it learns a model without that corpus and without half of the honest servers. It sets
// the thresholds with two thirds of these servers. Then it prints the detection rate in the corpus and the false positive rate
// in the last third. The scanner's rules cannot be learned again for each corpus: a pattern that fires on attacks of that
// corpus alone does not count. Each FILE has one definition per line, and the final model judges them.
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
	"mcpproxy/internal/catalog/scan"
)

func main() {
	shared := flag.String("shared", cmp.Or(os.Getenv("MCPPROXY_SHARED"), "../shared"), "where the corpora are")
	out := flag.String("out", "", "the file to write the weights to")
	verbose := flag.Bool("v", false, "print what is wrong")
	flag.Parse()
	if err := run(*shared, *out, flag.Args(), *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func run(shared, out string, unseen []string, verbose bool) error {
	samples, err := corpora.ReadAll(shared)
	if err != nil {
		return err
	}
	t, err := newTrainingData(".", samples)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "left out\tattacks\treview\tblock\tby the judge\twithout it\thonest\treview\tblock\tby the judge\twithout it\t")
	all, recall, sets := countsByCorpus{}, 0.0, t.attackCorpora()
	for k, set := range sets {
		attacks, honest := t.evaluateWithout(set, uint32(k), verbose)
		fmt.Fprintf(w, "%s\t%v\t%v\t\n", set, attacks, honest.total())
		all.merge(honest)
		recall += 100 * float64(attacks.review) / float64(attacks.all) / float64(len(sets))
	}
	fmt.Fprintf(w, "mean, and all\t\t%.2f %%\t\t\t\t%v\t\n", recall, all.total())
	for _, corpus := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(w, "honest of %s\t\t\t\t\t\t%v\t\n", corpus, all[corpus])
	}
	m := t.trainFinalModel()
	for _, file := range unseen {
		more, err := corpora.ReadLines(file)
		if err != nil {
			return err
		}
		attacks, honest := evaluateUnseen(more, m, verbose)
		fmt.Fprintf(w, "%s\t%v\t%v\t\n", filepath.Base(filepath.Dir(file)), attacks, honest)
	}
	w.Flush()
	fmt.Printf("thresholds: review %d, agree %d, in 1/%d\n", m.Review, m.Support, scan.ModelUnit)
	if out == "" {
		return nil
	}
	return os.WriteFile(out, m.Encode(), 0o644)
}
