// Command vectors learns a place for each word of tools, from texts of tools alone.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/search"
	"mcpproxy/internal/tool"
)

const dims = search.Dimensions

var (
	maxVocabulary = flag.Int("vocabulary", 9000, "")
	minTools      = flag.Int("tools", 4, "")
	epochs        = flag.Int("epochs", 12, "")
	batch         = flag.Int("batch", 256, "")
	rate          = flag.Float64("rate", 0.05, "")
	tau           = flag.Float64("tau", 0.08, "")
	drop          = flag.Float64("drop", 0.6, "")
	sets          = flag.String("sets", "scale", "")
	without       = flag.String("without", "", "")
	out           = flag.String("o", "", "")
	mode          = flag.String("mode", "", "")
)

type word struct {
	row    int
	weight float32
	where  uint8
}
type example struct {
	words []word
	key   string
}

func lines(file string, f func([]byte)) {
	r0, err := os.Open(file)
	if err != nil {
		panic(err)
	}
	defer r0.Close()
	var r io.Reader = r0
	if strings.HasSuffix(file, ".gz") {
		r, _ = gzip.NewReader(r0)
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		f(sc.Bytes())
	}
}

func read(dir, set string) (defs []tool.Definition) {
	file := filepath.Join(dir, "retrieval", set, "tools.jsonl")
	if set == "docker" {
		file = filepath.Join(dir, "security-corpora/benign-docker-registry/corpus.jsonl")
	}
	if _, err := os.Stat(file); err != nil {
		file += ".gz"
	}
	lines(file, func(line []byte) {
		var t struct {
			Server, Name, Title, Description string
			InputSchema                      json.RawMessage
		}
		if err := json.Unmarshal(line, &t); err != nil {
			panic(err)
		}
		if string(t.InputSchema) == "null" {
			t.InputSchema = nil
		}
		defs = append(defs, tool.Definition{ID: tool.ID{Server: t.Server, Tool: t.Name}, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema})
	})
	return
}

func main() {
	flag.Parse()
	dir := flag.Arg(0)
	seen := map[string]bool{}
	if *without != "" {
		for _, s := range strings.Split(*without, ",") {
			for _, d := range read(dir, s) {
				seen[strings.ToLower(d.Description)] = true
			}
		}
	}
	var all [][]search.Word
	var keys []string
	rank := search.Default()
	df := map[string]int{}
	for _, s := range strings.Split(*sets, ",") {
		if slices.Contains(strings.Split(*without, ","), s) {
			continue
		}
		for _, d := range read(dir, s) {
			k := strings.ToLower(d.Description)
			if seen[k] {
				continue
			}
			seen[k] = true
			ws := rank.Words(&d)
			for _, w := range ws {
				df[w.Stem]++
			}
			all = append(all, ws)
			keys = append(keys, strings.ToLower(d.ID.Tool))
		}
	}
	var vocab []string
	for s, n := range df {
		if n >= *minTools && len(s) > 1 {
			vocab = append(vocab, s)
		}
	}
	slices.SortFunc(vocab, func(a, b string) int { return cmp.Or(cmp.Compare(df[b], df[a]), cmp.Compare(a, b)) })
	vocab = vocab[:min(len(vocab), *maxVocabulary)]
	slices.Sort(vocab)
	rows := map[string]int{}
	for i, s := range vocab {
		rows[s] = i
	}
	var exs []example
	for i, ws := range all {
		e := example{key: keys[i]}
		for _, w := range ws {
			if r, ok := rows[w.Stem]; ok {
				x := word{row: r, weight: w.Weight}
				if w.InName {
					x.where |= 1
				}
				if w.InSummary {
					x.where |= 2
				}
				if w.InOther {
					x.where |= 4
				}
				e.words = append(e.words, x)
			}
		}
		if len(e.words) >= 4 {
			exs = append(exs, e)
		}
	}
	fmt.Println(len(all), "tools", len(exs), "examples", len(vocab), "stems")
	rng := rand.New(rand.NewPCG(1, 2))
	n := len(vocab)
	E := make([]float32, n*dims)
	for i, s := range vocab {
		idf := float32(math.Log(float64(len(all)) / float64(df[s])))
		for d := range dims {
			E[i*dims+d] = float32(rng.NormFloat64()) * idf / 30
		}
	}
	train(rng, E, exs)
	write(vocab, E)
}

type side struct {
	words []word
	vec   [dims]float32
	norm  float32
	grad  [dims]float32
}

func (s *side) encode(E []float32) {
	s.vec, s.grad = [dims]float32{}, [dims]float32{}
	for _, w := range s.words {
		row := E[w.row*dims : (w.row+1)*dims]
		for d := range s.vec {
			s.vec[d] += w.weight * row[d]
		}
	}
	sum := float32(0)
	for _, x := range s.vec {
		sum += x * x
	}
	s.norm = float32(math.Sqrt(float64(sum))) + 1e-6
	for d := range s.vec {
		s.vec[d] /= s.norm
	}
}

func (s *side) back(G []float32, touched *[]int, mark []bool) {
	dot := float32(0)
	for d := range s.vec {
		dot += s.vec[d] * s.grad[d]
	}
	var g [dims]float32
	for d := range s.vec {
		g[d] = (s.grad[d] - dot*s.vec[d]) / s.norm
	}
	for _, w := range s.words {
		if !mark[w.row] {
			mark[w.row] = true
			*touched = append(*touched, w.row)
		}
		row := G[w.row*dims : (w.row+1)*dims]
		for d := range g {
			row[d] += w.weight * g[d]
		}
	}
}

func train(rng *rand.Rand, E []float32, exs []example) {
	n := len(E)
	G, M, V := make([]float32, n), make([]float32, n), make([]float32, n)
	mark := make([]bool, n/dims)
	var touched []int
	order := make([]int, len(exs))
	for i := range order {
		order[i] = i
	}
	B := *batch
	qs, ds := make([]side, B), make([]side, B)
	P := make([]float32, B*B)
	steps := *epochs * (len(exs) / B)
	step := 0
	for ep := range *epochs {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		loss := 0.0
		for at := 0; at+B <= len(order); at += B {
			for i := range B {
				view(rng, &exs[order[at+i]], &qs[i], &ds[i])
				qs[i].encode(E)
				ds[i].encode(E)
			}
			for i := range B {
				for j := range B {
					s := float32(0)
					if i != j && exs[order[at+i]].key == exs[order[at+j]].key {
						s = -10
					} else {
						a, b := &qs[i].vec, &ds[j].vec
						var s0, s1, s2, s3 float32
						for d := 0; d < dims; d += 4 {
							s0 += a[d] * b[d]
							s1 += a[d+1] * b[d+1]
							s2 += a[d+2] * b[d+2]
							s3 += a[d+3] * b[d+3]
						}
						s = s0 + s1 + s2 + s3
					}
					P[i*B+j] = float32(math.Exp(float64(s-1) / *tau))
				}
			}
			// both ways
			rowSum, colSum := make([]float32, B), make([]float32, B)
			for i := range B {
				for j := range B {
					rowSum[i] += P[i*B+j]
					colSum[j] += P[i*B+j]
				}
			}
			for i := range B {
				loss -= math.Log(float64(P[i*B+i] / rowSum[i]))
				for j := range B {
					g := P[i*B+j]/rowSum[i] + P[i*B+j]/colSum[j]
					if i == j {
						g -= 2
					}
					if g < 1e-4 && g > -1e-4 {
						continue
					}
					g /= float32(*tau) * 2 * float32(B)
					a, b := &qs[i], &ds[j]
					for d := range a.grad {
						a.grad[d] += g * b.vec[d]
						b.grad[d] += g * a.vec[d]
					}
				}
			}
			for i := range B {
				qs[i].back(G, &touched, mark)
				ds[i].back(G, &touched, mark)
			}
			lr := float32(*rate) * float32(1-float64(step)/float64(steps))
			step++
			for _, r := range touched {
				mark[r] = false
				for k := r * dims; k < (r+1)*dims; k++ {
					g := G[k]
					G[k] = 0
					M[k] = 0.9*M[k] + 0.1*g
					V[k] = 0.999*V[k] + 0.001*g*g
					E[k] -= lr * M[k] / (float32(math.Sqrt(float64(V[k]))) + 1e-8)
				}
			}
			touched = touched[:0]
		}
		fmt.Printf("%d: %.4f\n", ep, loss/float64(len(order)/B*B))
	}
}

// view cuts an example in two: what somebody may ask, and the rest.
func view(rng *rand.Rand, e *example, q, d *side) {
	q.words, d.words = q.words[:0], d.words[:0]
	bit := uint8(1)
	switch r := rng.Float64(); {
	case r < 0.4:
	case r < 0.8:
		bit = 2
	default:
		bit = 4
	}
	keep := 0.85
	if bit == 4 {
		keep = 0.4
	}
	for _, w := range e.words {
		in := w.where&bit != 0 && rng.Float64() < keep
		if in {
			q.words = append(q.words, word{row: w.row, weight: 1})
			if rng.Float64() < *drop {
				continue
			}
		}
		d.words = append(d.words, w)
	}
	if len(q.words) == 0 || len(d.words) == 0 {
		q.words, d.words = q.words[:0], d.words[:0]
		for _, w := range e.words {
			q.words = append(q.words, word{row: w.row, weight: 1})
			d.words = append(d.words, w)
		}
	}
}

func write(vocab []string, E []float32) {
	var b bytes.Buffer
	b.WriteString(strings.Join(vocab, " ") + "\n")
	var body []byte
	for i := range vocab {
		most := float32(0)
		for _, x := range E[i*dims : (i+1)*dims] {
			most = max(most, x, -x)
		}
		scale := most / 127
		var four [4]byte
		binary.LittleEndian.PutUint32(four[:], math.Float32bits(scale))
		b.Write(four[:])
		for _, x := range E[i*dims : (i+1)*dims] {
			body = append(body, byte(int8(math.Round(float64(x/scale)))))
		}
	}
	b.Write(body)
	os.WriteFile(*out, b.Bytes(), 0o644)
}
