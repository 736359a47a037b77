package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
)

// trainingData contains all data for training.
type trainingData struct {
	samples []labelledSample
	written []labelledSample // by hand, for training only
	seeds   []phraseExample
	owners  map[int]string // by pattern of the scanner: the one corpus with attacks that have it; "" when there are several
}

// labelledSample is a labeled sample and its phrases.
type labelledSample struct {
	*corpora.Sample
	phrases []phraseExample
	fold    uint32
}

// crawledCorpus is the corpus with most of the benign definitions, of any quality.
const crawledCorpus = "scale"

// thresholdOnlyCorpus is the corpus whose definitions all have an unknown license. They are used to set thresholds, but
// not to train weights.
const thresholdOnlyCorpus = "real-servers"

// foldCount is the number of parts into which benign servers are split.
const foldCount = 6

// The training parameters, chosen without the evaluation sets.
var parameters = learningParameters{epochs: 2, rate: .3, decay: 3e-3, drop: 50}

const (
	textsPerSeed  = 120 // texts made of each seed
	seedWeight    = 1   // of a phrase that is poison, or of a seed, where one of a crawled tool has 1
	curatedWeight = 4   // of a phrase of an honest definition outside the crawl
	poisonRounds  = 2   // of choosing the phrases of malicious definitions that are the poison
	writtenPoison = 20  // of a phrase that is poison in a definition written by hand
	writtenHonest = 10  // of a phrase of an honest definition written by hand
	hardWeight    = 4   // of a phrase that is honest, but does not look so
	hardMargin    = -1  // from which score on it does not
	poisonMargin  = .5  // distance below the worst phrase within which phrases are poison too
)

// The shares of benign definitions that determine the thresholds: those that the model
// alone may flag for review, and those for which weak rules count.
const (
	reviewShare = .0022
	agreeShare  = .06
)

// newTrainingData reads the phrases of samples, of the seeds and of the definitions written by hand below the root of the
// repository.
func newTrainingData(root string, samples []corpora.Sample) (*trainingData, error) {
	t := &trainingData{owners: map[int]string{}}
	texts, _ := filepath.Glob(filepath.Join(root, "internal", "catalog", "scan", "testdata", "*.jsonl"))
	for _, file := range append(texts, filepath.Join(root, "bench", "judge", "written.jsonl")) {
		written, err := corpora.ReadLines(file)
		if err != nil {
			return nil, err
		}
		for k := range written {
			t.written = append(t.written, labelledSample{Sample: &written[k], phrases: toPhraseExamples(written[k].Definition)})
		}
	}
	for k := range samples {
		s := &samples[k]
		l := labelledSample{s, toPhraseExamples(s.Definition), s.FoldIndex(foldCount)}
		t.samples = append(t.samples, l)
		if s.Malicious {
			t.recordPatternOwners(s)
		}
	}
	g, err := parseSeeds(seedText)
	if err != nil {
		return nil, err
	}
	r := randomGenerator(7)
	for _, s := range g.seeds {
		for range textsPerSeed {
			d, err := newDefinition(g.drawText(s.text, &r))
			if err != nil {
				return nil, err
			}
			for _, e := range toPhraseExamples(d) {
				e.positive, e.weight = s.malicious, seedWeight
				t.seeds = append(t.seeds, e)
			}
		}
	}
	return t, nil
}

// recordPatternOwners records which patterns of the scanner match an attack.
func (t *trainingData) recordPatternOwners(s *corpora.Sample) {
	scan.Options{PatternFilter: func(pattern int) bool {
		if owner, known := t.owners[pattern]; known && owner != s.Corpus {
			t.owners[pattern] = ""
		} else {
			t.owners[pattern] = s.Corpus
		}
		return true
	}}.ScanDefinition(s.Definition)
}

// newDefinition returns a definition with a text. A text that begins with a word and a
// colon becomes the description of a parameter of that name.
func newDefinition(text string) (tool.Definition, error) {
	members := map[string]any{"name": "x", "description": strings.TrimSpace(text)}
	if name, said, ok := strings.Cut(text, ": "); ok && !strings.Contains(name, " ") {
		members = map[string]any{"name": "x", "inputSchema": map[string]any{"properties": map[string]any{name: map[string]any{"description": said}}}}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return tool.Definition{}, err
	}
	return tool.ParseDefinition("s", raw)
}

// toPhraseExamples returns the phrases of a definition that have features.
func toPhraseExamples(d tool.Definition) (all []phraseExample) {
	scan.EachClassifierPhrase(d, func(p *scan.PhraseFeatures) {
		e := phraseExample{weight: 1, sum: p.Hash()}
		for f := range p.EachWeightIndex {
			e.features = append(e.features, f)
		}
		e.norm = scan.ScoreDivisor(len(e.features))
		all = append(all, e)
	})
	return all
}

// attackCorpora returns the corpora that contain attacks.
func (t *trainingData) attackCorpora() (names []string) {
	for _, s := range t.samples {
		if s.Malicious && !slices.Contains(names, s.Corpus) {
			names = append(names, s.Corpus)
		}
	}
	return names
}

// trainModel trains on all samples except the attacks of a corpus and the benign definitions of
// some folds.
func (t *trainingData) trainModel(without string, not ...uint32) *logisticModel {
	base := slices.Clone(t.seeds)
	seen, honest := map[string]bool{}, map[uint64]bool{}
	var poisoned []*labelledSample
	written := 0 // of the poisoned ones
	for k := range len(t.written) + len(t.samples) {
		s := t.sampleAt(k)
		switch {
		case s.Malicious && s.Corpus != without:
			poisoned = append(poisoned, s)
			if k < len(t.written) {
				written++
			}
		case s.Malicious, s.Corpus == thresholdOnlyCorpus, k >= len(t.written) && slices.Contains(not, s.fold), seen[string(s.Definition.Raw)]:
		default:
			seen[string(s.Definition.Raw)] = true
			for _, e := range s.phrases {
				switch {
				case k < len(t.written):
					e.weight = writtenHonest
				case s.Corpus != crawledCorpus:
					e.weight = curatedWeight
				}
				honest[e.sum] = true
				base = append(base, e)
			}
		}
	}
	m := newLogisticModel()
	m.learn(base, parameters)
	for range poisonRounds {
		more := slices.Clone(base)
		for i := range more {
			if e := &more[i]; !e.positive && m.score(e) > hardMargin {
				e.weight *= hardWeight
			}
		}
		for k, s := range poisoned {
			weight := float64(seedWeight)
			if k < written {
				weight = writtenPoison
			}
			more = append(more, s.poisonPhrases(m, honest, weight)...)
		}
		m.learn(more, parameters)
	}
	return m
}

// sampleAt returns a definition written by hand, or after those another sample.
func (t *trainingData) sampleAt(k int) *labelledSample {
	if k < len(t.written) {
		return &t.written[k]
	}
	return &t.samples[k-len(t.written)]
}

// poisonPhrases returns the phrases of a malicious definition with the highest scores,
// without phrases that benign definitions contain too.
func (s *labelledSample) poisonPhrases(m *logisticModel, honest map[uint64]bool, weight float64) (worst []phraseExample) {
	best := math.Inf(-1)
	for i := range s.phrases {
		if !honest[s.phrases[i].sum] {
			best = max(best, m.score(&s.phrases[i]))
		}
	}
	for _, e := range s.phrases {
		if x := m.score(&e); !honest[e.sum] && (x > 0 || x >= best-poisonMargin) {
			e.positive, e.weight = true, weight
			worst = append(worst, e)
		}
	}
	return worst
}

// setThresholds sets the thresholds from the scores of benign definitions that were not
// used for training.
func setThresholds(m *scan.PhraseModel, scores []int) {
	slices.Sort(scores)
	at := func(share float64) int { return scores[int(float64(len(scores)-1)*(1-share))] + 1 }
	m.Review, m.Support = at(reviewShare), at(agreeShare)
}

// honestScores returns the highest score of each benign definition of some folds.
// A definition outside the crawled corpus counts several times.
func (t *trainingData) honestScores(m *scan.PhraseModel, of ...uint32) (scores []int) {
	for _, s := range t.samples {
		if s.Malicious || !slices.Contains(of, s.fold) {
			continue
		}
		best := math.MinInt16
		scan.EachClassifierPhrase(s.Definition, func(p *scan.PhraseFeatures) { best = max(best, m.ScorePhrase(p)) })
		scores = append(scores, best)
		for k := 1; k < curatedWeight && s.Corpus != crawledCorpus; k++ {
			scores = append(scores, best)
		}
	}
	return scores
}

// trainFinalModel trains on all samples. It sets the thresholds by cross-validation: each fold is scored by a model
// that was trained without it.
func (t *trainingData) trainFinalModel() *scan.PhraseModel {
	var scores []int
	for fold := uint32(0); fold < foldCount; fold += 2 {
		scores = append(scores, t.honestScores(t.trainModel("", fold, fold+1).toQuantized(), fold, fold+1)...)
	}
	m := t.trainModel("").toQuantized()
	setThresholds(m, scores)
	return m
}
