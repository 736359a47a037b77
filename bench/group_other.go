//go:build !unix

package main

import "os/exec"

// runInOwnProcessGroup does nothing, because this system has no process groups.
func runInOwnProcessGroup(*exec.Cmd) {}
