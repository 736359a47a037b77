package result

import (
	"math"
	"strconv"

	"mcpproxy/internal/mcp/wirejson"
)

// numberValue is the value of a number of JSON.
func numberValue(v []byte) float64 {
	f, _ := strconv.ParseFloat(string(v), 64) // out of range it is infinite
	return f
}

// wholeOf is a number as an index: without its fraction, within the range of an int32.
func wholeOf(v []byte) (int, bool) {
	if kind(v) != "number" {
		return 0, false
	}
	return int(max(math.MinInt32, min(math.MaxInt32, math.Trunc(numberValue(v))))), true
}

// appendNumber writes a number as JavaScript does. What is none becomes null, and what is
// infinite the largest that there is, as jq has it.
func appendNumber(f float64) []byte {
	switch {
	case math.IsNaN(f):
		return null
	case math.IsInf(f, 0):
		f = math.Copysign(math.MaxFloat64, f)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e17 {
		return strconv.AppendFloat(nil, f+0, 'f', -1, 64)
	}
	return strconv.AppendFloat(nil, f, 'g', -1, 64)
}

// integers are both numbers where they are written as integers that fit.
func integers(a, b []byte) (int64, int64, bool) {
	m, one := wirejson.Int(a)
	n, two := wirejson.Int(b)
	return m, n, one && two
}

func addNumbers(a, b []byte) []byte {
	if m, n, ok := integers(a, b); ok {
		if sum := m + n; (sum > m) == (n > 0) {
			return strconv.AppendInt(nil, sum, 10)
		}
	}
	return appendNumber(numberValue(a) + numberValue(b))
}

func subtract(a, b []byte) []byte {
	if m, n, ok := integers(a, b); ok {
		if rest := m - n; (rest < m) == (n > 0) {
			return strconv.AppendInt(nil, rest, 10)
		}
	}
	return appendNumber(numberValue(a) - numberValue(b))
}
