// Command vectors trains word vectors for tool search. It writes the table that internal/catalog/search embeds, from texts of
// published tools alone.
//
//	go run ./bench/vectors -o internal/catalog/search/vectors.bin ../shared
//
// The texts are those of retrieval/scale (Apache-2.0, MIT) and of security-corpora/benign-docker-registry (MIT). The command
// reads no request of any set, and skips the texts about a tool in the sets that judge the search. The same texts give the same
// bytes on amd64; other processors may round sums differently.
//
// Training moves the vectors of a possible query, of a tool's name or of a sentence of its description towards the rest of the
// tool's definition, and away from other tools: see train.go.
package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

func main() {
	out := flag.String("o", "", "write the table to this `file`")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./bench/vectors -o file DIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	table, err := learnTable(flag.Arg(0))
	if err == nil {
		err = os.WriteFile(*out, table, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

// Which words get a vector.
const (
	minTools = 3    // words of fewer tools are left out
	maxStems = 9000 // those of the most tools
)

// learnTable returns the table that is trained on the texts in a directory.
func learnTable(dir string) ([]byte, error) {
	tools, err := readTools(dir)
	if err != nil {
		return nil, err
	}
	stems, in := selectStems(tools)
	rng := rand.New(rand.NewPCG(1, 2))
	m := newVectorModel(rng, stems, in, len(tools))
	m.train(rng, toTrainingExamples(tools, stems))
	return m.encodeTable(stems), nil
}

// selectStems returns the stems that get a vector, and the number of tools that have each.
func selectStems(tools []publishedTool) (stems []string, in map[string]int) {
	in = map[string]int{}
	for _, t := range tools {
		for _, w := range t.words {
			in[w.Stem]++
		}
	}
	for stem, n := range in {
		if n >= minTools && len(stem) > 1 && (stem[0] < '0' || stem[0] > '9') {
			stems = append(stems, stem)
		}
	}
	slices.SortFunc(stems, func(a, b string) int { return cmp.Or(cmp.Compare(in[b], in[a]), cmp.Compare(a, b)) })
	stems = stems[:min(len(stems), maxStems)]
	slices.Sort(stems)
	return stems, in
}

// encodeTable writes the vectors as search.ReadVectors reads them.
func (m *vectorModel) encodeTable(stems []string) []byte {
	var b bytes.Buffer
	b.WriteString(strings.Join(stems, " ") + "\n")
	steps := make([]byte, 0, len(m.vectors))
	for i := range stems {
		row := m.vectors[i*dimensions : (i+1)*dimensions]
		most := float32(0)
		for _, x := range row {
			most = max(most, x, -x)
		}
		scale := most / 127
		b.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(scale)))
		for _, x := range row {
			steps = append(steps, byte(int8(math.Round(float64(x/scale)))))
		}
	}
	b.Write(steps)
	return b.Bytes()
}
