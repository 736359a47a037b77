package scan

import (
	_ "embed"
	"encoding/binary"
	"math"
	"sync"
)

// ModelWeights is how many weights a model has.
const ModelWeights = 1 << 16

// ModelUnit is how many units of weights, scores and thresholds are one in learning.
const ModelUnit = 16

// Model is what was learned.
type Model struct {
	Review  int // a phrase of this score or more is to be read by a person
	Support int // one of this score or more agrees with a weak rule
	weights [ModelWeights]int8
}

//go:embed model.bin
var embeddedModel string

// EmbeddedModel returns the model of the program.
var EmbeddedModel = sync.OnceValue(func() *Model {
	m, ok := parseModel([]byte(embeddedModel))
	if !ok {
		panic("judge: model.bin is not a model")
	}
	return m
})

// parseModel reads what Bytes wrote. It reports whether it was that.
func parseModel(data []byte) (m *Model, ok bool) {
	if len(data) != 4+ModelWeights {
		return nil, false
	}
	m = &Model{Review: int(int16(binary.LittleEndian.Uint16(data))), Support: int(int16(binary.LittleEndian.Uint16(data[2:])))}
	for i, b := range data[4:] {
		m.weights[i] = int8(b)
	}
	return m, true
}

// Bytes returns a model as it is kept: the two thresholds, then a byte a weight.
func (m *Model) Bytes() []byte {
	data := binary.LittleEndian.AppendUint16(nil, uint16(int16(m.Review)))
	data = binary.LittleEndian.AppendUint16(data, uint16(int16(m.Support)))
	for _, w := range m.weights {
		data = append(data, byte(w))
	}
	return data
}

// SetTools sets the weight of a feature, in learning.
func (m *Model) Set(feature uint16, weight int8) { m.weights[feature] = weight }

// Score returns what a phrase weighs.
func (m *Model) Score(p *Phrase) int {
	sum := 0
	for _, f := range p.features {
		sum += int(m.weights[f.weight])
	}
	return sum * 256 / int(256*PhraseNorm(len(p.features)))
}

// minPhraseWords is how many words a phrase needs to be taken for poison, or learned from.
const minPhraseWords = 4

// minNormFeatures is how many features a phrase counts as when it has fewer.
const minNormFeatures = 40

// PhraseNorm returns by what the sum of the weights of so many features is divided.
func PhraseNorm(features int) float64 { return math.Sqrt(float64(max(features, minNormFeatures))) }

// Heaviest returns the words from first to end, at most most of them, that make a
// phrase weigh the most.
func (m *Model) Heaviest(p *Phrase, most int) (first, end int) {
	best := 0
	for from := range p.words {
		to, sum := min(from+most, len(p.words)), 0
		for _, f := range p.features {
			if int(f.first) >= from && int(f.end) <= to {
				sum += int(m.weights[f.weight])
			}
		}
		if from == 0 || sum > best {
			best, first, end = sum, from, to
		}
	}
	return first, end
}
