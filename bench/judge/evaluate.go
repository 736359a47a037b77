package main

import (
	"fmt"
	"slices"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/scan"
)

// findingCounts counts the verdicts about some definitions.
type findingCounts struct{ all, review, block, judge, without int }

func (t *findingCounts) scanAndCount(s *corpora.Sample, by scan.Options) scan.Report {
	r := by.ScanDefinition(s.Definition)
	t.all++
	if r.Verdict != scan.Clean {
		t.review++
	}
	if r.Verdict == scan.Block {
		t.block++
	}
	if slices.ContainsFunc(r.Findings, func(f scan.Finding) bool { return f.Rule == scan.RuleClassifier }) {
		t.judge++
	}
	by.Classifier = nil
	if by.ScanDefinition(s.Definition).Verdict != scan.Clean {
		t.without++
	}
	return r
}

// countsByCorpus has counts by corpus.
type countsByCorpus map[string]findingCounts

func (t countsByCorpus) scanAndCount(s *corpora.Sample, by scan.Options) scan.Report {
	of := t[s.Corpus]
	r := of.scanAndCount(s, by)
	t[s.Corpus] = of
	return r
}

// merge adds other counts.
func (t countsByCorpus) merge(others countsByCorpus) {
	for corpus, o := range others {
		of := t[corpus]
		t[corpus] = of.plus(o)
	}
}

// total returns the sum of all corpora.
func (t countsByCorpus) total() (all findingCounts) {
	for _, of := range t {
		all = all.plus(of)
	}
	return all
}

func (t findingCounts) plus(o findingCounts) findingCounts {
	return findingCounts{t.all + o.all, t.review + o.review, t.block + o.block, t.judge + o.judge, t.without + o.without}
}

func (t findingCounts) String() string {
	share := func(n int) float64 { return 100 * float64(n) / float64(max(1, t.all)) }
	return fmt.Sprintf("%d\t%.2f %%\t%.2f %%\t%.2f %%\t%.2f %%", t.all, share(t.review), share(t.block), share(t.judge), share(t.without))
}

// evaluateWithout evaluates a corpus, and a fold of the benign definitions, with a model that was trained without either.
func (t *trainingData) evaluateWithout(set string, fold uint32, verbose bool) (attacks findingCounts, honest countsByCorpus) {
	honest = countsByCorpus{}
	next, third := (fold+1)%foldCount, (fold+2)%foldCount
	m := t.trainModel(set, fold, next, third).toQuantized()
	setThresholds(m, t.honestScores(m, next, third))
	by := scan.Options{Classifier: m, PatternFilter: func(pattern int) bool { return t.owners[pattern] != set }}
	for _, s := range t.samples {
		switch {
		case s.Malicious && s.Corpus == set:
			printMisjudged(verbose, s.Sample, attacks.scanAndCount(s.Sample, by))
		case !s.Malicious && s.fold == fold:
			printMisjudged(verbose, s.Sample, honest.scanAndCount(s.Sample, by))
		}
	}
	return attacks, honest
}

// evaluateUnseen evaluates definitions that were not used for training.
func evaluateUnseen(samples []corpora.Sample, m *scan.PhraseModel, verbose bool) (attacks, honest findingCounts) {
	by := scan.Options{Classifier: m}
	for k := range samples {
		s := &samples[k]
		if s.Malicious {
			printMisjudged(verbose, s, attacks.scanAndCount(s, by))
		} else {
			printMisjudged(verbose, s, honest.scanAndCount(s, by))
		}
	}
	return attacks, honest
}

// printMisjudged prints a definition that was judged wrongly.
func printMisjudged(verbose bool, s *corpora.Sample, r scan.Report) {
	if !verbose || s.Malicious == (r.Verdict != scan.Clean) {
		return
	}
	fmt.Printf("%v %s %s %s\n", r.Verdict, s.Corpus, s.ID, s.Technique)
	if s.Malicious {
		fmt.Printf("    %.500q\n", s.Definition.Description)
	}
	for _, f := range r.Findings {
		fmt.Printf("    %v %s %q\n", f.Severity, f.Rule, f.Excerpt)
	}
}
