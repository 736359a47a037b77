package search

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// WordVectors contains word embeddings of stems, trained by bench/vectors. Words that occur in the same tools have
// similar vectors.
type WordVectors struct {
	stems   []string
	rows    map[string]int
	scales  []float32 // row → scale of its values
	values  string    // row → a signed byte per dimension
	lengths []float32 // row → length of its vector
}

// vectorsFile is the output of bench/vectors.
//
//go:embed vectors.bin
var vectorsFile string

var embeddedVectors = sync.OnceValue(func() *WordVectors {
	v, err := parseVectors(vectorsFile)
	if err != nil {
		panic(err)
	}
	return v
})

// parseVectors parses a table: a line of space-separated stems, then for each stem a scale (float32, little endian) and
// its values.
func parseVectors(table string) (*WordVectors, error) {
	head, rows, _ := strings.Cut(table, "\n")
	stems := strings.Fields(head)
	if len(rows) != len(stems)*(4+Dimensions) {
		return nil, fmt.Errorf("search: a table of vectors for %d stems has %d bytes", len(stems), len(rows))
	}
	v := &WordVectors{stems: stems, rows: make(map[string]int, len(stems)), scales: make([]float32, len(stems)), lengths: make([]float32, len(stems))}
	v.values = rows[4*len(stems):]
	for i, stem := range stems {
		v.rows[stem] = i
		v.scales[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(rows[4*i : 4*i+4])))
		v.lengths[i] = 1
		squares := 0
		for _, step := range []byte(v.values[i*Dimensions : (i+1)*Dimensions]) {
			squares += int(int8(step)) * int(int8(step))
		}
		if squares > 0 {
			v.lengths[i] = float32(math.Sqrt(float64(squares)))
		}
	}
	return v, nil
}

// vectorSum is a sum of word vectors.
type vectorSum [Dimensions]float32

// addStemVector adds the vector of a stem and reports whether there is one.
func (v *WordVectors) addStemVector(to *vectorSum, stem string, weight float32) bool {
	row := v.rowOf(stem)
	if row < 0 {
		return false
	}
	v.addRowVector(to, int(row), weight)
	return true
}

// rowOf returns the row of a stem, or -1 if there is none.
func (v *WordVectors) rowOf(stem string) int32 {
	if row, ok := v.rows[stem]; ok {
		return int32(row)
	}
	return -1
}

func (v *WordVectors) addRowVector(to *vectorSum, row int, weight float32) {
	weight *= v.scales[row]
	steps := v.values[row*Dimensions : (row+1)*Dimensions]
	for i := range to {
		to[i] += weight * float32(int8(steps[i]))
	}
}

func (v *vectorSum) toUnitVector() (d unitVector) {
	squares := float32(0)
	for _, x := range v {
		squares += x * x
	}
	if squares == 0 {
		return d
	}
	scale := 127 / float32(math.Sqrt(float64(squares)))
	for i, x := range v {
		d[i] = int8(math.Round(float64(x * scale)))
	}
	return d
}

// cosine returns the cosine similarity, 0 if negative.
func (d *unitVector) cosine(e *unitVector) float32 {
	return float32(max(0, dot(d, e))) / (127 * 127)
}

// minSimilarity is the minimum similarity of words that may replace each other.
const minSimilarity = 0.4

// nearestStems returns the stems that are most similar to the given stem, among those rows that wanted accepts.
func (v *WordVectors) nearestStems(stem string, among []int, wanted func(string) bool) (found []similarWord) {
	row, ok := v.rows[stem]
	if !ok {
		return nil
	}
	for _, at := range among {
		other := v.stems[at]
		if l := v.rowSimilarity(row, at); l >= minSimilarity && wanted(other) {
			found = append(found, similarWord{other, l})
		}
	}
	slices.SortFunc(found, func(a, b similarWord) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.word, b.word))
	})
	return found[:min(len(found), maxSimilar)]
}

// rowSimilarity returns the cosine similarity of two rows.
func (v *WordVectors) rowSimilarity(i, j int) float32 {
	return float32(dot(v.rowVector(i), v.rowVector(j))) / (v.lengths[i] * v.lengths[j])
}

// rowVector returns the values of a row. They must not be modified.
func (v *WordVectors) rowVector(row int) *unitVector {
	return (*unitVector)(unsafe.Pointer(unsafe.StringData(v.values[row*Dimensions : (row+1)*Dimensions])))
}
