// Package e2e tests the product as its users meet it: the real binary, its
// configuration file, its processes, HTTP and command line.
//
// It guarantees nothing to other packages and has no code for them. What it
// does not do: test one package's details, for which each has tests of its own.
package e2e
