// Package race is what tests ask about the race detector.
//
// Under it code takes ten times as long and more, and what one goroutine does alone it says
// nothing about: a test that proves something by its volume does less there, and all of it
// without. It guarantees that without the race detector nothing is less. It does not make tests
// of concurrency smaller: they are what the race detector is for. It is used by tests only.
package race

import "flag"

// Volume returns how much of something a test does: all of it, or what is enough under the race detector.
func Volume(all, enough int) int {
	if Enabled {
		return enough
	}
	return all
}

// FewerChecks has rapid draw the values of a property 25 times under the race detector, instead of 100
// times, unless the command line says how often. It is for TestMain.
func FewerChecks() {
	if f := flag.Lookup("rapid.checks"); f != nil && Enabled {
		_ = f.Value.Set("25")
	}
}
