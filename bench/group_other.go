//go:build !unix

package main

import "os/exec"

// runInOwnProcessGroup leaves the command where it is: there are no process groups here.
func runInOwnProcessGroup(*exec.Cmd) {}
