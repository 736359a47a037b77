package result

import (
	"math"
	"strconv"

	"mcpproxy/internal/mcp/wirejson"
)

// parseNumber parses a JSON number.
func parseNumber(v []byte) float64 {
	f, _ := strconv.ParseFloat(string(v), 64) // infinite if it is out of range
	return f
}

// toIndex returns a number as an index: truncated, within int32.
func toIndex(v []byte) (int, bool) {
	if kindName(v) != "number" {
		return 0, false
	}
	return int(max(math.MinInt32, min(math.MaxInt32, math.Trunc(parseNumber(v))))), true
}

// formatNumber formats a number as JavaScript does. NaN becomes null, and infinity the largest number, as
// in jq.
func formatNumber(f float64) []byte {
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

// parseIntegers returns both numbers and true if both are integers that fit into an int64.
func parseIntegers(a, b []byte) (int64, int64, bool) {
	m, one := wirejson.Int(a)
	n, two := wirejson.Int(b)
	return m, n, one && two
}

func addNumbers(a, b []byte) []byte {
	if m, n, ok := parseIntegers(a, b); ok {
		if sum := m + n; (sum > m) == (n > 0) {
			return strconv.AppendInt(nil, sum, 10)
		}
	}
	return formatNumber(parseNumber(a) + parseNumber(b))
}

func subtractNumbers(a, b []byte) []byte {
	if m, n, ok := parseIntegers(a, b); ok {
		if rest := m - n; (rest < m) == (n > 0) {
			return strconv.AppendInt(nil, rest, 10)
		}
	}
	return formatNumber(parseNumber(a) - parseNumber(b))
}
