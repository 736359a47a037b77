// Package e2e tests the product as its users meet it: the real binary, its configuration file, its processes, HTTP and
// command line.
//
// It guarantees nothing to other packages and has no code for them. It does not test the details of one package; each
// package has tests of its own for these.
package e2e
