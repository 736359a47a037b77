package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"mcpproxy/internal/scan"
	"mcpproxy/internal/tool"
)

// sample is one labelled definition.
type sample struct {
	id, corpus, technique string
	server                string
	peers                 []peer
	malicious             bool
	half                  int // 0: rules were tuned to it; 1: they were not
	definition            tool.Definition
	report                scan.Report
	took                  time.Duration
}

// benchScan prints what the scanner finds in the labelled corpora, how often it
// is wrong about real tools, and how long it takes.
func benchScan(o options) error {
	samples, err := readSamples(o.shared)
	if err != nil {
		return err
	}
	for k := range samples {
		s := &samples[k]
		scan.Definition(s.definition) // so that what is made once is made, and memory is warm
		s.took = time.Hour
		for range 3 { // the least: the machine may be busy
			start := time.Now()
			s.report = scan.Definition(s.definition)
			s.took = min(s.took, time.Since(start))
		}
	}
	printCorpora(samples)
	printGroups("malicious, by technique", samples, func(s *sample) []string {
		if !s.malicious {
			return nil
		}
		return []string{s.corpus + ": " + s.technique}
	})
	printGroups("benign, by rule that fired", samples, func(s *sample) []string {
		if s.malicious {
			return nil
		}
		return rulesOf(s)
	})
	printGroups("malicious, by rule that fired", samples, func(s *sample) []string {
		if !s.malicious {
			return nil
		}
		return rulesOf(s)
	})
	printGroups("benign that is blocked, by its rules", samples, func(s *sample) []string {
		if s.malicious || s.report.Verdict != scan.Block {
			return nil
		}
		return []string{strings.Join(rulesOf(s), " + ")}
	})
	printTimes(samples)
	if o.verbose {
		printWrong(samples)
	}
	return nil
}

func rulesOf(s *sample) []string {
	rules := map[string]bool{}
	for _, f := range s.report.Findings {
		if f.Severity > scan.SeverityNote {
			rules[f.Rule] = true
		}
	}
	return slices.Sorted(maps.Keys(rules))
}

// tally counts verdicts.
type tally struct{ all, review, block, incomplete int }

func (t *tally) add(v scan.Verdict) {
	t.all++
	switch v {
	case scan.Review:
		t.review++
	case scan.Block:
		t.review++ // what is blocked is not let through by a review
		t.block++
	case scan.Incomplete:
		t.incomplete++
	}
}

func (t tally) String() string {
	percent := func(n int) float64 { return 100 * float64(n) / float64(max(1, t.all)) }
	return fmt.Sprintf("%d\t%d\t%.2f %%\t%d\t%.2f %%\t%d", t.all, t.review, percent(t.review), t.block, percent(t.block), t.incomplete)
}

func printCorpora(samples []sample) {
	tallies := map[string]*tally{}
	count := func(name string, v scan.Verdict) {
		if tallies[name] == nil {
			tallies[name] = &tally{}
		}
		tallies[name].add(v)
	}
	for _, s := range samples {
		label := "benign"
		if s.malicious {
			label = "malicious"
		}
		count(label+" "+s.corpus, s.report.Verdict)
		count(label+" (all)", s.report.Verdict)
		count(fmt.Sprintf("%s (half %d)", label, s.half), s.report.Verdict)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "corpus\tdefinitions\treview\t\tblock\t\tincomplete\t")
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		fmt.Fprintf(w, "%s\t%v\t\n", name, tallies[name])
	}
	w.Flush()
}

func printGroups(title string, samples []sample, groups func(*sample) []string) {
	tallies := map[string]*tally{}
	for k := range samples {
		for _, g := range groups(&samples[k]) {
			if tallies[g] == nil {
				tallies[g] = &tally{}
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

func printTimes(samples []sample) {
	var times []time.Duration
	var sum time.Duration
	var bytes int
	for _, s := range samples {
		times = append(times, s.took)
		sum += s.took
		bytes += len(s.definition.Raw)
	}
	slices.Sort(times)
	at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1))] }
	fmt.Printf("\n%d definitions, %d bytes on average: mean %v, p50 %v, p99 %v, longest %v, %.1f MB/s\n", len(times), bytes/len(times),
		sum/time.Duration(len(times)), at(.5), at(.99), at(1), float64(bytes)/1e6/sum.Seconds())
}

// printWrong prints the malicious definitions that were not found and the
// benign ones that were, of the half that rules may be tuned to.
func printWrong(samples []sample) {
	for _, s := range samples {
		if s.half != 0 || s.malicious == (s.report.Verdict != scan.Clean) {
			continue
		}
		fmt.Printf("\n%v %s %s %s\n", s.report.Verdict, s.corpus, s.id, s.technique)
		for _, f := range s.report.Findings {
			fmt.Printf("  %v %s %s: %q\n", f.Severity, f.Rule, f.Path, f.Excerpt)
		}
		if s.malicious {
			fmt.Printf("  %.1500s\n", s.definition.Raw)
		}
	}
}

// readSamples reads all that is labelled: the security corpora, and as benign
// the tools of real servers and those that retrieval is measured with.
func readSamples(shared string) ([]sample, error) {
	var samples []sample
	corpora, _ := filepath.Glob(filepath.Join(shared, "security-corpora", "*", "corpus.jsonl"))
	for _, file := range append(corpora, filepath.Join(shared, "retrieval", "scale", "tools.jsonl.gz")) {
		more, err := readLines(file)
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
	}
	lists, _ := filepath.Glob(filepath.Join(shared, "real-servers", "*.tools.json"))
	for _, file := range lists {
		more, err := readList(file)
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
	}
	if len(corpora) == 0 || len(lists) == 0 {
		return nil, errors.New("there are no corpora: say with --shared where they are")
	}
	return samples, nil
}

// row is a line of a corpus; the rest of its members are the definition's.
type row struct {
	ID, Label, Surface, Technique, Server string
	Peers                                 []peer
}

// peer is a tool of a server that stands beside a sample.
type peer struct{ Server, Name string }

func readLines(file string) ([]sample, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	corpus := filepath.Base(filepath.Dir(file))
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	var samples []sample
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		r := row{Label: "benign", Surface: "definition"}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &members); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if members["name"] == nil || r.Surface != "definition" {
			continue
		}
		for _, ours := range []string{"id", "label", "surface", "technique", "server", "peers", "derived", "hard_negative", "resembles"} {
			delete(members, ours)
		}
		raw, err := json.Marshal(members)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if s, ok := newSample(corpus, r, raw); ok {
			samples = append(samples, s)
		}
	}
	return samples, lines.Err()
}

func newSample(corpus string, r row, raw []byte) (sample, bool) {
	d, err := tool.ParseDefinition("s", bytes.Clone(raw))
	h := fnv.New32a()
	h.Write([]byte(r.ID))
	return sample{id: r.ID, corpus: corpus, server: r.Server, peers: r.Peers, technique: cmp.Or(r.Technique, "-"), malicious: r.Label == "malicious", half: int(h.Sum32() >> 7 & 1), definition: d}, err == nil
}

func readList(file string) ([]sample, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var samples []sample
	for k, raw := range list.Tools {
		if s, ok := newSample("real-servers", row{ID: fmt.Sprintf("%s/%d", filepath.Base(file), k), Server: strings.TrimSuffix(filepath.Base(file), ".tools.json")}, raw); ok {
			samples = append(samples, s)
		}
	}
	return samples, nil
}
