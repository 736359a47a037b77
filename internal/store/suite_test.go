package store_test

// The files suite_*.go are the tests that every database must pass. They test a store through a real activity.Log with
// a real spool, as users use it: every filter must return the matching records in order, without duplicates.

import (
	"testing"

	"mcpproxy/internal/testutil/volume"
)

// concurrent names the subtests that use the store from several goroutines, or that restart or prune while the
// projector of the log is running. Runs with the race detector include them.
var concurrent = map[string]bool{
	"asks": true, "chain under load": true, "leases": true, "pages under load": true, "restart": true, "retention of calls": true,
}

// runSuite runs all tests of the suite. The subtests are independent and run in parallel.
func runSuite(t *testing.T, open storeOpener) {
	for name, test := range map[string]func(*testing.T, storeOpener){
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
				volume.SkipUnderRace(t)
			}
			t.Parallel()
			test(t, open)
		})
	}
}
