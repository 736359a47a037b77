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

// Vectors are places of stems in a space in which words of the same tools lie near
// each other. They are learned by bench/vectors from texts of tools.
type Vectors struct {
	stems   []string
	rows    map[string]int
	scales  []float32 // row → what one of its steps is
	values  string    // row → a signed byte a dimension
	lengths []float32 // row → the length of its steps
}

// vectorsFile is what bench/vectors has written.
//
//go:embed vectors.bin
var vectorsFile string

var embeddedVectors = sync.OnceValue(func() *Vectors {
	v, err := readVectors(vectorsFile)
	if err != nil {
		panic(err)
	}
	return v
})

// readVectors reads a table: a line of stems with a blank between them, then for each a
// scale (float32, little endian) and its steps.
func readVectors(table string) (*Vectors, error) {
	head, rows, _ := strings.Cut(table, "\n")
	stems := strings.Fields(head)
	if len(rows) != len(stems)*(4+Dimensions) {
		return nil, fmt.Errorf("search: a table of vectors for %d stems has %d bytes", len(stems), len(rows))
	}
	v := &Vectors{stems: stems, rows: make(map[string]int, len(stems)), scales: make([]float32, len(stems)), lengths: make([]float32, len(stems))}
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

// vector is a sum of the vectors of words.
type vector [Dimensions]float32

// add adds the vector of a stem and reports whether there is one.
func (v *Vectors) add(to *vector, stem string, weight float32) bool {
	row := v.row(stem)
	if row < 0 {
		return false
	}
	v.addRow(to, int(row), weight)
	return true
}

// row is which of the vectors a stem has, -1 for none.
func (v *Vectors) row(stem string) int32 {
	if row, ok := v.rows[stem]; ok {
		return int32(row)
	}
	return -1
}

func (v *Vectors) addRow(to *vector, row int, weight float32) {
	weight *= v.scales[row]
	steps := v.values[row*Dimensions : (row+1)*Dimensions]
	for i := range to {
		to[i] += weight * float32(int8(steps[i]))
	}
}

func (v *vector) normalized() (d unitVector) {
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

// maxSimilarity is the cosine of the angle between two directions, 0 if it is obtuse.
func (d *unitVector) cosine(e *unitVector) float32 {
	return float32(max(0, dot(d, e))) / (127 * 127)
}

// minSimilarity is the likeness of words that may stand for each other.
const minSimilarity = 0.4

// nearest returns the stems that lie nearest to one, of those among that are wanted.
func (v *Vectors) nearest(stem string, among []int, wanted func(string) bool) (found []similarWord) {
	row, ok := v.rows[stem]
	if !ok {
		return nil
	}
	for _, at := range among {
		other := v.stems[at]
		if l := v.cosine(row, at); l >= minSimilarity && wanted(other) {
			found = append(found, similarWord{other, l})
		}
	}
	slices.SortFunc(found, func(a, b similarWord) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.word, b.word))
	})
	return found[:min(len(found), maxSimilar)]
}

// maxSimilarity is the cosine of the angle between two rows.
func (v *Vectors) cosine(i, j int) float32 {
	return float32(dot(v.unitVector(i), v.unitVector(j))) / (v.lengths[i] * v.lengths[j])
}

// unitVector returns the steps of a row. Nobody may write to them.
func (v *Vectors) unitVector(row int) *unitVector {
	return (*unitVector)(unsafe.Pointer(unsafe.StringData(v.values[row*Dimensions : (row+1)*Dimensions])))
}
