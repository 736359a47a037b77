package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// valueCountUpperBound returns an upper bound on the number of values in a JSON text.
func valueCountUpperBound(raw []byte) int {
	return 1 + bytes.Count(raw, []byte{','}) + bytes.Count(raw, []byte{'['}) + bytes.Count(raw, []byte{'{'})
}

// weightPerStep is the weight of values that one step can compare.
const weightPerStep = 32

// maxDigits is the maximum number of digits of a number including its exponent, in schemas and arguments.
const maxDigits = 350

// valueSize is the size of a value: the maximum cost of a comparison with it, its depth, and the number of digits of
// its longest number, written out.
type valueSize struct{ weight, depth, digits int }

func measureValue(v any) valueSize {
	s := valueSize{weight: 1}
	add := func(inner any) {
		in := measureValue(inner)
		s = valueSize{s.weight + in.weight, max(s.depth, in.depth+1), max(s.digits, in.digits)}
	}
	switch v := v.(type) {
	case string:
		s.weight += len(v) / 256
	case json.Number: // the library compares it as a fraction
		s.weight, s.digits = 3*weightPerStep, len(v)
		if at := strings.IndexAny(string(v), "eE"); at >= 0 {
			power, _ := strconv.ParseFloat(string(v[at+1:]), 64)
			s.digits += int(min(math.Abs(power), maxDigits+1))
		}
	case []any:
		for _, element := range v {
			add(element)
		}
	case map[string]any:
		for name, member := range v {
			s.weight += 4 + len(name)/256
			add(member)
		}
	}
	return s
}
