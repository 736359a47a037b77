//go:build !race

package race

// Enabled reports whether the race detector looks at this program.
const Enabled = false

// Slowdown is how much longer things may take than without the race detector.
const Slowdown = 1
