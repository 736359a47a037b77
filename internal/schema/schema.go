// Package schema validates a call's arguments against a tool's own JSON
// Schema, drafts 2020-12 (the default) and 07.
//
// It guarantees that no schema makes it fetch anything, run unbounded or
// panic, and that a schema which is itself broken is reported as such (Broken)
// instead of refusing calls. It does not decide what a violation means: that
// is the gateway's, by validate_arguments.
package schema
