//go:build !race

package volume

// RaceDetector reports whether the test runs under the race detector.
const RaceDetector = false

// Slowdown is the factor by which time and memory bounds grow under the race detector.
const Slowdown = 1
