// Package storetest is the suite that every database of the store must pass.
//
// It looks at a store through a real activity.Log with a real spool, so that it
// checks what users get: the records that were made, by every filter, in their
// order, once. It is used by tests only.
package storetest

import "testing"

// Run runs the suite.
func Run(t *testing.T, open Opener) {
	for name, test := range map[string]func(*testing.T, Opener){
		"filters":            testFilters,
		"random filters":     testRandomFilters,
		"summaries":          testSummaries,
		"each":               testEach,
		"chain":              testChain,
		"chain under load":   testChainUnderLoad,
		"time":               testTime,
		"pages":              testPages,
		"pages under load":   testPagesUnderLoad,
		"cursor":             testCursor,
		"get":                testGet,
		"search":             testSearch,
		"restart":            testRestart,
		"late ends":          testLateEnds,
		"interrupted":        testInterrupted,
		"lost beginnings":    testLostBeginnings,
		"retention":          testRetention,
		"retention of calls": testRetentionWhileCallsRun,
		"retention of size":  testRetentionOfSize,
		"refusals":           testRefusals,
		"size of refusals":   testSizeOfRefusals,
		"counts":             testCounts,
		"approvals":          testApprovals,
		"replaced approvals": testReplacedApprovals,
		"restored approvals": testRestoredApprovals,
		"tokens":             testTokens,
		"asks":               testAsks,
		"a call asked twice": testAskedTwice,
		"bounds of asks":     testAskBounds,
		"leases":             testLeases,
		"presence":           testPresence,
		"tools":              testTools,
		"results":            testResults,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}
