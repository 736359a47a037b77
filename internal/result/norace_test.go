//go:build !race

package result

// slowdown is how much longer things take under the race detector.
const slowdown = 1
