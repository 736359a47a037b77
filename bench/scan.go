package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/scan"
)

// scannedSample is one labelled definition and its scan report.
type scannedSample struct {
	corpora.Sample
	report scan.Report
	took   time.Duration
}

// benchScan prints the scanner's findings in the labeled corpora, its errors on
// real tools, and the scan time.
func benchScan(o options) error {
	all, err := corpora.ReadAll(o.shared)
	if err != nil {
		return err
	}
	samples := make([]scannedSample, len(all))
	for k := range samples {
		s := &samples[k]
		s.Sample = all[k]
		scan.ScanDefinition(s.Definition) // so that one-time initialization is done and memory is warm
		s.took = time.Hour
		for range 3 { // the least: the machine may be busy
			start := time.Now()
			s.report = scan.ScanDefinition(s.Definition)
			s.took = min(s.took, time.Since(start))
		}
	}
	printVerdictsByCorpus(samples)
	printVerdictsByGroup("malicious, by technique", samples, func(s *scannedSample) []string {
		if !s.Malicious {
			return nil
		}
		return []string{s.Corpus + ": " + s.Technique}
	})
	printVerdictsByGroup("benign, by rule that fired", samples, func(s *scannedSample) []string {
		if s.Malicious {
			return nil
		}
		return firedRules(s)
	})
	printVerdictsByGroup("malicious, by rule that fired", samples, func(s *scannedSample) []string {
		if !s.Malicious {
			return nil
		}
		return firedRules(s)
	})
	printVerdictsByGroup("benign that is blocked, by its rules", samples, func(s *scannedSample) []string {
		if s.Malicious || s.report.Verdict != scan.Block {
			return nil
		}
		return []string{strings.Join(firedRules(s), " + ")}
	})
	printScanTimes(samples)
	if o.verbose {
		printMisjudged(samples)
	}
	return nil
}

func firedRules(s *scannedSample) []string {
	rules := map[string]bool{}
	for _, f := range s.report.Findings {
		if f.Severity > scan.SeverityNote {
			rules[f.Rule] = true
		}
	}
	return slices.Sorted(maps.Keys(rules))
}

// verdictCounts counts verdicts.
type verdictCounts struct{ all, review, block, incomplete int }

func (t *verdictCounts) add(v scan.Verdict) {
	t.all++
	switch v {
	case scan.Review:
		t.review++
	case scan.Block:
		t.review++ // a review would stop a blocked definition too
		t.block++
	case scan.Incomplete:
		t.incomplete++
	}
}

func (t verdictCounts) String() string {
	percent := func(n int) float64 { return 100 * float64(n) / float64(max(1, t.all)) }
	return fmt.Sprintf("%d\t%d\t%.2f %%\t%d\t%.2f %%\t%d", t.all, t.review, percent(t.review), t.block, percent(t.block), t.incomplete)
}

func printVerdictsByCorpus(samples []scannedSample) {
	tallies := map[string]*verdictCounts{}
	count := func(name string, v scan.Verdict) {
		if tallies[name] == nil {
			tallies[name] = &verdictCounts{}
		}
		tallies[name].add(v)
	}
	for _, s := range samples {
		label := "benign"
		if s.Malicious {
			label = "malicious"
		}
		count(label+" "+s.Corpus, s.report.Verdict)
		count(label+" (all)", s.report.Verdict)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "corpus\tdefinitions\treview\t\tblock\t\tincomplete\t")
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		fmt.Fprintf(w, "%s\t%v\t\n", name, tallies[name])
	}
	w.Flush()
}

func printVerdictsByGroup(title string, samples []scannedSample, groups func(*scannedSample) []string) {
	tallies := map[string]*verdictCounts{}
	for k := range samples {
		for _, g := range groups(&samples[k]) {
			if tallies[g] == nil {
				tallies[g] = &verdictCounts{}
			}
			tallies[g].add(samples[k].report.Verdict)
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%s\tdefinitions\treview\t\tblock\t\tincomplete\t\n", title)
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		fmt.Fprintf(w, "%s\t%v\t\n", name, tallies[name])
	}
	w.Flush()
}

func printScanTimes(samples []scannedSample) {
	var times []time.Duration
	var sum time.Duration
	var bytes int
	for _, s := range samples {
		times = append(times, s.took)
		sum += s.took
		bytes += len(s.Definition.Raw)
	}
	slices.Sort(times)
	at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1))] }
	fmt.Printf("\n%d definitions, %d bytes on average: mean %v, p50 %v, p99 %v, longest %v, %.1f MB/s\n", len(times), bytes/len(times),
		sum/time.Duration(len(times)), at(.5), at(.99), at(1), float64(bytes)/1e6/sum.Seconds())
}

// printMisjudged prints the false negatives and the false positives.
func printMisjudged(samples []scannedSample) {
	for _, s := range samples {
		if s.Malicious == (s.report.Verdict != scan.Clean) {
			continue
		}
		fmt.Printf("\n%v %s %s %s\n", s.report.Verdict, s.Corpus, s.ID, s.Technique)
		for _, f := range s.report.Findings {
			fmt.Printf("  %v %s %s: %q\n", f.Severity, f.Rule, f.Path, f.Excerpt)
		}
		if s.Malicious {
			fmt.Printf("  %.1500s\n", s.Definition.Raw)
		}
	}
}
