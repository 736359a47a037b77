// Package doctor checks an installation with a table of numbered checks. Each check is a small function of the collected facts. A finding says what is
// wrong, why it matters, and which command fixes it.
//
// Files:
//   - checks.go: the table of checks, of which reference_test.go writes the reference
//   - gather.go: collects the facts (type Facts in facts.go), in parts that run concurrently
//   - doctor.go: runs checks and applies fixes; finding.go: a finding
//   - daemon.go, files.go, configuration.go, servers.go, tools.go, clients.go, machine.go: the checks by subject
//   - command.go: the commands that findings suggest
//   - programs.go: which programs and directories a server needs
//   - offline.go: what status and approvals show while no daemon runs
//   - holder*.go: finds the process that listens on a port, or has a file or the lock of a data directory
//   - owner_*.go, mount_*.go, parents.go: owners, mount points and parents of files
//
// Guarantees:
//   - Facts of a running daemon come from the daemon. Without one, only files and processes are read; nothing is started or contacted.
//   - The order of findings is deterministic. A run takes at most TotalTime and names the parts that took too long.
//   - Only ApplyFixes changes anything, and only what is safe: modes of the user's own files, a missing directory, an unused socket.
//
// It does not print, and makes no decisions about servers or tools.
package doctor
