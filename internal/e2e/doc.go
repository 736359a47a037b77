// Package e2e tests the product as its users meet it: the real binary, its configuration file, its processes, HTTP and
// command line.
//
// It guarantees nothing to other packages and has no code for them. It does not test the details of a package. Each
// package has its own tests for these.
package e2e
