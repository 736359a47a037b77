//go:build race

package door

// walkSteps is how far a random walk goes: under the race detector all takes ten times as long.
const walkSteps = 10
