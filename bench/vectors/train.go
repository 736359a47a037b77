package main

import (
	"math"
	"math/rand/v2"

	"mcpproxy/internal/catalog/search"
)

const dimensions = search.Dimensions

// The training parameters.
const (
	epochs        = 5
	batch         = 256
	rate          = 0.05 // of Adam, falling to nothing
	temperature   = 0.15
	dropFromMeant = 0.6 // fraction of the query's words that the tool lacks: so that related words replace them
)

// weightedWord is a word of an example.
type weightedWord struct {
	row    int
	weight float32
	in     *search.TrainingWord
}

// trainingExample is a tool for training.
type trainingExample struct {
	name  string
	words []weightedWord
}

// minWords is the minimum number of known words in an example.
const minWords = 4

func toTrainingExamples(tools []publishedTool, stems []string) (out []trainingExample) {
	rows := make(map[string]int, len(stems))
	for i, stem := range stems {
		rows[stem] = i
	}
	for _, t := range tools {
		e := trainingExample{name: t.name}
		for i := range t.words {
			w := &t.words[i]
			if row, ok := rows[w.Stem]; ok {
				e.words = append(e.words, weightedWord{row, w.Weight, w})
			}
		}
		if len(e.words) >= minWords {
			out = append(out, e)
		}
	}
	return out
}

// vectorModel has a vector for each stem, and the state of the Adam optimizer.
type vectorModel struct {
	vectors, gradient, mean, square []float32
	touched                         []int // stems that have a gradient
	isTouched                       []bool
}

// newVectorModel initializes every stem with a random vector, longer for rare stems. Initially, two texts are therefore
// similar if they share rare words.
func newVectorModel(rng *rand.Rand, stems []string, in map[string]int, tools int) *vectorModel {
	n := len(stems) * dimensions
	m := &vectorModel{
		vectors: make([]float32, n), gradient: make([]float32, n), mean: make([]float32, n), square: make([]float32, n),
		isTouched: make([]bool, len(stems)),
	}
	for i, stem := range stems {
		rare := float32(math.Log(float64(tools) / float64(in[stem])))
		for d := range dimensions {
			m.vectors[i*dimensions+d] = float32(rng.NormFloat64()) * rare / 30
		}
	}
	return m
}

// train trains on the examples in batches. One part of each example must match its other part among all those in the
// batch (InfoNCE, in both directions).
func (m *vectorModel) train(rng *rand.Rand, of []trainingExample) {
	asked, meant := make([]examplePart, batch), make([]examplePart, batch)
	steps := epochs * (len(of) / batch)
	step := 0
	for range epochs {
		rng.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		for at := 0; at+batch <= len(of); at += batch {
			for i := range batch {
				splitExample(rng, &of[at+i], &asked[i], &meant[i])
				m.computeDirection(&asked[i])
				m.computeDirection(&meant[i])
			}
			computeGradients(of[at:at+batch], asked, meant)
			for i := range batch {
				m.propagateGradient(&asked[i])
				m.propagateGradient(&meant[i])
			}
			m.adamStep(rate * float32(1-float64(step)/float64(steps)))
			step++
		}
	}
}

// examplePart is a part of an example, and its vector.
type examplePart struct {
	words     []weightedWord
	direction [dimensions]float32
	length    float32
	gradient  [dimensions]float32
}

// The query is the name in four of ten examples, the first sentence in four, and some words
// of the rest of the description in two.
func splitExample(rng *rand.Rand, e *trainingExample, asked, meant *examplePart) {
	kind, keep := rng.Float64(), 0.85
	if kind >= 0.8 {
		keep = 0.4
	}
	asked.words, meant.words = asked.words[:0], meant.words[:0]
	for _, w := range e.words {
		from := w.in.InName
		switch {
		case kind >= 0.8:
			from = w.in.InDescription
		case kind >= 0.4:
			from = w.in.InSummary
		}
		if from && rng.Float64() < keep {
			asked.words = append(asked.words, weightedWord{row: w.row, weight: 1})
			if rng.Float64() < dropFromMeant {
				continue
			}
		}
		meant.words = append(meant.words, w)
	}
	if len(asked.words) == 0 || len(meant.words) == 0 {
		asked.words, meant.words = asked.words[:0], append(meant.words[:0], e.words...)
		for _, w := range e.words {
			asked.words = append(asked.words, weightedWord{row: w.row, weight: 1})
		}
	}
}

func (m *vectorModel) computeDirection(t *examplePart) {
	t.direction, t.gradient = [dimensions]float32{}, [dimensions]float32{}
	for _, w := range t.words {
		row := m.vectors[w.row*dimensions : (w.row+1)*dimensions]
		for d := range t.direction {
			t.direction[d] += w.weight * row[d]
		}
	}
	squares := float32(0)
	for _, x := range t.direction {
		squares += x * x
	}
	t.length = float32(math.Sqrt(float64(squares))) + 1e-6
	for d := range t.direction {
		t.direction[d] /= t.length
	}
}

// computeGradients computes the gradients of a batch. Tools of the same name are treated as equal.
func computeGradients(of []trainingExample, asked, meant []examplePart) {
	n := len(of)
	like := make([]float32, n*n)
	rows, columns := make([]float32, n), make([]float32, n)
	for i := range n {
		for j := range n {
			if i != j && of[i].name == of[j].name {
				continue
			}
			cosine := dotProduct(&asked[i].direction, &meant[j].direction)
			e := float32(math.Exp(float64(cosine-1) / temperature))
			like[i*n+j] = e
			rows[i] += e
			columns[j] += e
		}
	}
	for i := range n {
		for j := range n {
			g := like[i*n+j]/rows[i] + like[i*n+j]/columns[j]
			if i == j {
				g -= 2
			}
			if -negligible < g && g < negligible {
				continue
			}
			g /= temperature * 2 * float32(n)
			a, b := &asked[i], &meant[j]
			for d := range dimensions {
				a.gradient[d] += g * b.direction[d]
				b.gradient[d] += g * a.direction[d]
			}
		}
	}
}

const negligible = 1e-4

func dotProduct(a, b *[dimensions]float32) float32 {
	var s0, s1, s2, s3 float32
	for d := 0; d < dimensions; d += 4 {
		s0 += a[d] * b[d]
		s1 += a[d+1] * b[d+1]
		s2 += a[d+2] * b[d+2]
		s3 += a[d+3] * b[d+3]
	}
	return s0 + s1 + s2 + s3
}

// propagateGradient adds a text's gradient to its words.
func (m *vectorModel) propagateGradient(t *examplePart) {
	along := dotProduct(&t.direction, &t.gradient)
	for _, w := range t.words {
		if !m.isTouched[w.row] {
			m.isTouched[w.row] = true
			m.touched = append(m.touched, w.row)
		}
		row := m.gradient[w.row*dimensions : (w.row+1)*dimensions]
		for d := range row {
			row[d] += w.weight * (t.gradient[d] - along*t.direction[d]) / t.length
		}
	}
}

// adamStep performs an Adam step for the stems that have a gradient.
func (m *vectorModel) adamStep(rate float32) {
	for _, stem := range m.touched {
		m.isTouched[stem] = false
		for i := stem * dimensions; i < (stem+1)*dimensions; i++ {
			g := m.gradient[i]
			m.gradient[i] = 0
			m.mean[i] = 0.9*m.mean[i] + 0.1*g
			m.square[i] = 0.999*m.square[i] + 0.001*g*g
			m.vectors[i] -= rate * m.mean[i] / (float32(math.Sqrt(float64(m.square[i]))) + 1e-8)
		}
	}
	m.touched = m.touched[:0]
}
