// Package archtest is the structure of the program as tests: which package may
// import which, that there is one gate to the upstream tools, who may speak SQL
// and parse flags, which modules of others are used and why, and the shape of
// packages, types, files, functions and comments.
//
// message that names the place and the rule, and that a package missing from
// the table of docs/architecture.md is such a change. It reads the source and
// the table of docs/architecture.md is such a change. It reads the source and
// that table, and nothing else: it runs no tool, needs no network, and does not
// judge what the code does. There is nothing here but tests.
package archtest
