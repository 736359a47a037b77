package scan

import (
	_ "embed"
	"encoding/binary"
	"math"
	"sync"
)

// ModelWeights is the number of weights of a model.
const ModelWeights = 1 << 16

// ModelUnit is the fixed-point unit of weights, scores and thresholds.
const ModelUnit = 16

// PhraseModel is a trained model.
type PhraseModel struct {
	Review  int // minimum score of a phrase for a review
	Support int // minimum score that supports a weak rule
	weights [ModelWeights]int8
}

//go:embed model.bin
var embeddedModel string

// EmbeddedModel returns the embedded model.
var EmbeddedModel = sync.OnceValue(func() *PhraseModel {
	m, ok := parseModel([]byte(embeddedModel))
	if !ok {
		panic("judge: model.bin is not a model")
	}
	return m
})

// parseModel parses the output of Encode.
func parseModel(data []byte) (m *PhraseModel, ok bool) {
	if len(data) != 4+ModelWeights {
		return nil, false
	}
	m = &PhraseModel{Review: int(int16(binary.LittleEndian.Uint16(data))), Support: int(int16(binary.LittleEndian.Uint16(data[2:])))}
	for i, b := range data[4:] {
		m.weights[i] = int8(b)
	}
	return m, true
}

// Encode returns the stored form: the two thresholds, then a byte per weight.
func (m *PhraseModel) Encode() []byte {
	data := binary.LittleEndian.AppendUint16(nil, uint16(int16(m.Review)))
	data = binary.LittleEndian.AppendUint16(data, uint16(int16(m.Support)))
	for _, w := range m.weights {
		data = append(data, byte(w))
	}
	return data
}

// SetWeight sets the weight of a feature, for training.
func (m *PhraseModel) SetWeight(feature uint16, weight int8) { m.weights[feature] = weight }

// ScorePhrase returns the score of a phrase. The previous phrase can only raise it, so that nothing hides what follows.
func (m *PhraseModel) ScorePhrase(p *PhraseFeatures) int {
	return (m.sumOf(p.features[:p.own]) + max(0, m.sumOf(p.features[p.own:]))) * 256 / int(256*ScoreDivisor(p.own))
}

func (m *PhraseModel) sumOf(features []phraseFeature) (sum int) {
	for _, f := range features {
		sum += int(m.weights[f.weight])
	}
	return sum
}

// minPhraseWords is the minimum number of words of a phrase that is scored or trained on.
const minPhraseWords = 4

// minNormFeatures is the minimum number of features for the norm.
const minNormFeatures = 40

// ScoreDivisor returns the divisor for the sum of that many weights.
func ScoreDivisor(features int) float64 { return math.Sqrt(float64(max(features, minNormFeatures))) }

// HeaviestWords returns the range of at most most words with the highest weight.
func (m *PhraseModel) HeaviestWords(p *PhraseFeatures, most int) (first, end int) {
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
