// Package cputime measures the processor time that a test uses.
//
// A bound on processor time holds on a busy machine, where one on the time of day does not. On a
// system that does not report processor time, every measurement is 0. Only tests import this package.
package cputime
