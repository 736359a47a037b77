package main

import (
	"math"
	"math/rand/v2"

	"mcpproxy/internal/catalog/search"
)

const dims = search.Dimensions

// How it is learned.
const (
	epochs      = 5
	batch       = 256
	rate        = 0.05 // of Adam, falling to nothing
	temperature = 0.15
	forget      = 0.6 // of the words asked, how many the tool lacks: so that others have to stand for them
)

// word is a word of an example.
type word struct {
	row    int
	weight float32
	in     *search.TrainingWord
}

// example is a tool to learn from.
type example struct {
	name  string
	words []word
}

// minWords is how many known words an example has at least.
const minWords = 4

func examples(tools []published, stems []string) (out []example) {
	rows := make(map[string]int, len(stems))
	for i, stem := range stems {
		rows[stem] = i
	}
	for _, t := range tools {
		e := example{name: t.name}
		for i := range t.words {
			w := &t.words[i]
			if row, ok := rows[w.Stem]; ok {
				e.words = append(e.words, word{row, w.Weight, w})
			}
		}
		if len(e.words) >= minWords {
			out = append(out, e)
		}
	}
	return out
}

// model has a vector for each stem, and what Adam remembers.
type model struct {
	at, gradient, mean, square []float32
	touched                    []int // stems that have a gradient
	isTouched                  []bool
}

// newModel places every stem by chance, rare ones far out: so two texts are alike at first
// as far as they share rare words.
func newModel(rng *rand.Rand, stems []string, in map[string]int, tools int) *model {
	n := len(stems) * dims
	m := &model{
		at: make([]float32, n), gradient: make([]float32, n), mean: make([]float32, n), square: make([]float32, n),
		isTouched: make([]bool, len(stems)),
	}
	for i, stem := range stems {
		rare := float32(math.Log(float64(tools) / float64(in[stem])))
		for d := range dims {
			m.at[i*dims+d] = float32(rng.NormFloat64()) * rare / 30
		}
	}
	return m
}

// train shows the examples in batches. Of each, one part is to find the other among those of
// all in the batch (InfoNCE, both ways).
func (m *model) train(rng *rand.Rand, of []example) {
	asked, meant := make([]text, batch), make([]text, batch)
	steps := epochs * (len(of) / batch)
	step := 0
	for range epochs {
		rng.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		for at := 0; at+batch <= len(of); at += batch {
			for i := range batch {
				part(rng, &of[at+i], &asked[i], &meant[i])
				m.place(&asked[i])
				m.place(&meant[i])
			}
			compare(of[at:at+batch], asked, meant)
			for i := range batch {
				m.back(&asked[i])
				m.back(&meant[i])
			}
			m.move(rate * float32(1-float64(step)/float64(steps)))
			step++
		}
	}
}

// text is a part of an example, and where it points.
type text struct {
	words     []word
	direction [dims]float32
	length    float32
	gradient  [dims]float32
}

// Of ten examples, four ask with the name, four with the first sentence, two with some words
// of the rest of the description.
func part(rng *rand.Rand, e *example, asked, meant *text) {
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
			asked.words = append(asked.words, word{row: w.row, weight: 1})
			if rng.Float64() < forget {
				continue
			}
		}
		meant.words = append(meant.words, w)
	}
	if len(asked.words) == 0 || len(meant.words) == 0 {
		asked.words, meant.words = asked.words[:0], append(meant.words[:0], e.words...)
		for _, w := range e.words {
			asked.words = append(asked.words, word{row: w.row, weight: 1})
		}
	}
}

func (m *model) place(t *text) {
	t.direction, t.gradient = [dims]float32{}, [dims]float32{}
	for _, w := range t.words {
		row := m.at[w.row*dims : (w.row+1)*dims]
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

// compare works out the gradients of a batch. Tools of the same name are not told apart.
func compare(of []example, asked, meant []text) {
	n := len(of)
	like := make([]float32, n*n)
	rows, columns := make([]float32, n), make([]float32, n)
	for i := range n {
		for j := range n {
			if i != j && of[i].name == of[j].name {
				continue
			}
			cosine := dot(&asked[i].direction, &meant[j].direction)
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
			for d := range dims {
				a.gradient[d] += g * b.direction[d]
				b.gradient[d] += g * a.direction[d]
			}
		}
	}
}

const negligible = 1e-4

func dot(a, b *[dims]float32) float32 {
	var s0, s1, s2, s3 float32
	for d := 0; d < dims; d += 4 {
		s0 += a[d] * b[d]
		s1 += a[d+1] * b[d+1]
		s2 += a[d+2] * b[d+2]
		s3 += a[d+3] * b[d+3]
	}
	return s0 + s1 + s2 + s3
}

// back hands a text's gradient on to its words.
func (m *model) back(t *text) {
	along := dot(&t.direction, &t.gradient)
	for _, w := range t.words {
		if !m.isTouched[w.row] {
			m.isTouched[w.row] = true
			m.touched = append(m.touched, w.row)
		}
		row := m.gradient[w.row*dims : (w.row+1)*dims]
		for d := range row {
			row[d] += w.weight * (t.gradient[d] - along*t.direction[d]) / t.length
		}
	}
}

// move takes a step of Adam for the stems that have a gradient.
func (m *model) move(rate float32) {
	for _, stem := range m.touched {
		m.isTouched[stem] = false
		for i := stem * dims; i < (stem+1)*dims; i++ {
			g := m.gradient[i]
			m.gradient[i] = 0
			m.mean[i] = 0.9*m.mean[i] + 0.1*g
			m.square[i] = 0.999*m.square[i] + 0.001*g*g
			m.at[i] -= rate * m.mean[i] / (float32(math.Sqrt(float64(m.square[i]))) + 1e-8)
		}
	}
	m.touched = m.touched[:0]
}
