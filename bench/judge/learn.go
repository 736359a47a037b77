package main

import (
	"math"

	"mcpproxy/internal/catalog/scan"
)

// phraseExample is a phrase for training.
type phraseExample struct {
	features []uint16
	norm     float64 // divides the sum of its weights
	sum      uint64  // of its words
	weight   float64 // how much it counts
	positive bool    // it is poison
}

// learningParameters configures the training.
type learningParameters struct {
	epochs int     // how often each example is seen
	rate   float64 // of the steps
	decay  float64 // what the weights lose in 1,000 steps
	drop   int     // of 100 features those that a step leaves out, so that no few of them carry a phrase alone
}

// logisticModel has the weights during training: a logistic regression with AdaGrad,
// whose steps become smaller for frequent features. Products are rounded before they
// are added, so that no CPU fuses the two operations.
type logisticModel struct {
	weights, squares []float64
	bias             float64
}

func newLogisticModel() *logisticModel {
	return &logisticModel{weights: make([]float64, scan.ModelWeights), squares: make([]float64, scan.ModelWeights)}
}

func (m *logisticModel) score(e *phraseExample) float64 {
	sum := 0.0
	for _, f := range e.features {
		sum += m.weights[f]
	}
	return float64(sum/e.norm) + m.bias
}

// learn trains on the examples in a random order, which is the same in every
// run.
func (m *logisticModel) learn(examples []phraseExample, how learningParameters) {
	r := randomGenerator(1)
	order := make([]int, len(examples))
	for i := range order {
		order[i] = i
	}
	var kept phraseExample
	for range how.epochs {
		for i := len(order) - 1; i > 0; i-- {
			j := r.intBelow(i + 1)
			order[i], order[j] = order[j], order[i]
		}
		for n, k := range order {
			if kept.copyWithDroppedFeatures(&examples[k], how.drop, &r) {
				m.gradientStep(&kept, how.rate)
			}
			if n%1000 == 999 {
				m.decayWeights(1 - how.decay)
			}
		}
	}
}

// copyWithDroppedFeatures sets e to a copy of another example without some of its features. It reports whether
// features are left.
func (e *phraseExample) copyWithDroppedFeatures(of *phraseExample, drop int, r *randomGenerator) bool {
	e.positive, e.weight, e.features = of.positive, of.weight, e.features[:0]
	for _, f := range of.features {
		if r.intBelow(100) >= drop {
			e.features = append(e.features, f)
		}
	}
	e.norm = float64(of.norm*float64(len(e.features))) / float64(len(of.features))
	return len(e.features) > 0
}

func (m *logisticModel) gradientStep(e *phraseExample, rate float64) {
	x := m.score(e)
	slope := .5 + .5*(x/(1+math.Abs(x)))
	if e.positive {
		slope -= 1
	}
	slope *= e.weight
	if math.Abs(slope) < 1e-4 {
		return
	}
	g := slope / e.norm
	square := float64(g * g)
	for _, f := range e.features {
		m.squares[f] += square
		m.weights[f] -= float64(float64(rate*g) / (1e-2 + math.Sqrt(m.squares[f])))
	}
	m.bias -= float64(rate * .01 * slope)
}

func (m *logisticModel) decayWeights(by float64) {
	for i := range m.weights {
		m.weights[i] *= by
	}
}

// toQuantized returns the weights as they are stored, without the bias, which is part of
// the thresholds.
func (m *logisticModel) toQuantized() *scan.PhraseModel {
	q := &scan.PhraseModel{}
	for i, w := range m.weights {
		q.SetWeight(uint16(i), int8(max(-127, min(127, math.Round(w*scan.ModelUnit)))))
	}
	return q
}
