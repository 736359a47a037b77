// Package doctor checks an installation with a table of numbered checks. Each check is a small function that examines
// the collected facts. A finding describes the fault, its consequences and the command that fixes it.
//
// Files:
//   - checks.go: the table of checks; reference_test.go generates the reference from it
//   - gather.go: collects the facts, in parts that run concurrently; the output of status and approvals while no daemon
//     is running
//   - doctor.go: the type Facts; runs checks, applies fixes, and makes findings and the commands that they suggest
//   - machine.go, files.go, configuration.go, servers.go, clients.go: the checks by subject
//   - system_*.go: finds the process that listens on a port, has a file open or locks a data directory, and the mount
//     point of a file
//   - owner_*.go: owners of files
//
// Guarantees:
//   - Facts about a running daemon come from the daemon. Without a daemon, the doctor reads only files and processes.
//     It starts and contacts nothing.
//   - The order of findings is deterministic. A run takes at most TotalTime and names the parts that took too long.
//   - Only ApplyFixes changes anything. It changes the modes of the user's own files, creates a missing directory and
//     removes an unused socket.
//
// Package doctor prints nothing and makes no decisions about servers or tools.
package doctor
