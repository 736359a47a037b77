// Package cputime measures the CPU time that a test uses.
//
// A limit on CPU time holds on a busy machine, in contrast to one on wall-clock time. On a system that
// does not report CPU time, every measurement is 0. Only tests import this package.
package cputime
