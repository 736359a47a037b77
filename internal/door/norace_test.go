//go:build !race

package door

// walkSteps is how far a random walk goes.
const walkSteps = 50
