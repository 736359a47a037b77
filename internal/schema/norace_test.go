//go:build !race

package schema

// slowdown is how much longer things take under the race detector.
const slowdown = 1
