package main

import (
	"fmt"
	"slices"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/scan"
)

// tally counts what is found of some definitions.
type tally struct{ all, review, block, judge, without int }

func (t *tally) add(s *corpora.Sample, by scan.Options) scan.Report {
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

// tallies are tallies by the corpus of the definitions.
type tallies map[string]tally

func (t tallies) add(s *corpora.Sample, by scan.Options) scan.Report {
	of := t[s.Corpus]
	r := of.add(s, by)
	t[s.Corpus] = of
	return r
}

// join adds what others counted.
func (t tallies) join(others tallies) {
	for corpus, o := range others {
		of := t[corpus]
		t[corpus] = of.plus(o)
	}
}

// sum returns all as one.
func (t tallies) sum() (all tally) {
	for _, of := range t {
		all = all.plus(of)
	}
	return all
}

func (t tally) plus(o tally) tally {
	return tally{t.all + o.all, t.review + o.review, t.block + o.block, t.judge + o.judge, t.without + o.without}
}

func (t tally) String() string {
	share := func(n int) float64 { return 100 * float64(n) / float64(max(1, t.all)) }
	return fmt.Sprintf("%d\t%.2f %%\t%.2f %%\t%.2f %%\t%.2f %%", t.all, share(t.review), share(t.block), share(t.judge), share(t.without))
}

// leftOut judges a corpus, and a fold of the honest definitions, by what was learned
// without either.
func (t *training) leftOut(set string, fold uint32, verbose bool) (attacks tally, honest tallies) {
	honest = tallies{}
	next, third := (fold+1)%folds, (fold+2)%folds
	m := t.model(set, fold, next, third).quantized()
	calibrate(m, t.honestScores(m, next, third))
	by := scan.Options{Classifier: m, PatternFilter: func(pattern int) bool { return t.owners[pattern] != set }}
	for _, s := range t.samples {
		switch {
		case s.Malicious && s.Corpus == set:
			show(verbose, s.Sample, attacks.add(s.Sample, by))
		case !s.Malicious && s.fold == fold:
			show(verbose, s.Sample, honest.add(s.Sample, by))
		}
	}
	return attacks, honest
}

// further judges definitions that nothing was learned from.
func further(samples []corpora.Sample, m *scan.PhraseModel, verbose bool) (attacks, honest tally) {
	by := scan.Options{Classifier: m}
	for k := range samples {
		s := &samples[k]
		if s.Malicious {
			show(verbose, s, attacks.add(s, by))
		} else {
			show(verbose, s, honest.add(s, by))
		}
	}
	return attacks, honest
}

// show prints a definition that was judged wrongly.
func show(verbose bool, s *corpora.Sample, r scan.Report) {
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
