//go:build !race

package e2e

// underRace reports whether the race detector watches.
const underRace = false
