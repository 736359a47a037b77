// Package storetest is the test suite that every database of package store must pass.
//
// It tests a store through a real activity.Log with a real spool, as users use it: every filter must return the
// matching records in order, without duplicates. Only tests use this package.
//
// Files:
//   - storetest.go: Run and the list of subtests
//   - env.go: Setup, the Store interface, and a log over a store for one test
//   - random.go: random records and filters, and a simple reference for filters
//   - activity.go: filters, pages, search, retention, restarts
//   - summary.go: summaries and sessions, with a simple reference
//   - chain.go, refusals.go: the hash chain; the quota and counts of refusals
//   - approvals.go, questions.go, presence.go, tokens.go, tools.go: the other tables (tools.go
//     also tests stored results)
package storetest

import "testing"

// concurrent names the subtests that use the store from several goroutines, or that restart or prune while the
// projector of the log is running. Runs with the race detector include them.
var concurrent = map[string]bool{
	"asks": true, "chain under load": true, "leases": true, "pages under load": true, "restart": true, "retention of calls": true,
}

// Run runs all tests of the suite. The subtests are independent and run in parallel.
func Run(t *testing.T, setup Setup) {
	for name, test := range map[string]func(*testing.T, Setup){
		"filters":            testFilters,
		"random filters":     testRandomFilters,
		"summaries":          testSummaries,
		"each":               testEach,
		"chain":              testChain,
		"chain under load":   testChainUnderLoad,
		"pruned calls":       testChainOfPrunedCalls,
		"time":               testClockJumps,
		"pages":              testPages,
		"pages under load":   testPagesUnderLoad,
		"cursor":             testCursor,
		"get":                testGet,
		"search":             testSearch,
		"restart":            testRestart,
		"late ends":          testLateEnds,
		"interrupted":        testInterruptedCalls,
		"lost beginnings":    testLostBeginnings,
		"retention":          testRetention,
		"retention of calls": testRetentionWhileCallsRun,
		"retention of size":  testRetentionOfSize,
		"refusals":           testRefusals,
		"size of refusals":   testSizeOfRefusals,
		"counts":             testRefusalCounts,
		"approvals":          testApprovals,
		"replaced approvals": testReplacedApprovals,
		"restored approvals": testRestoredApprovals,
		"tokens":             testTokens,
		"sessions":           testSessions,
		"learned sessions":   testLearnedSessions,
		"asks":               testQuestions,
		"a call asked twice": testCallAskedTwice,
		"bounds of asks":     testQuestionLimits,
		"leases":             testLeases,
		"presence":           testPresence,
		"tools":              testTools,
		"results":            testResults,
	} {
		t.Run(name, func(t *testing.T) {
			if !concurrent[name] {
				setup.Serial(t)
			}
			t.Parallel()
			test(t, setup)
		})
	}
}
