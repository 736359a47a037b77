// Package doctor checks an installation with a table of numbered checks, each a small function of the collected facts. A finding says what is wrong, why
// it matters, and which command fixes it. Holder (holder*.go) finds the process that holds a port, a file or the lock of a data directory.
//
// Guarantees:
//   - Facts of a running daemon come from the daemon. Without one, only files and processes are read; nothing is started or contacted.
//   - The order of findings is deterministic. A run takes at most TotalTime and names the checks that took too long.
//   - Only ApplyFixes changes anything, and only what is safe: modes of the user's own files, a missing directory, an unused socket.
//
// It does not print, and makes no decisions about servers or tools.
package doctor
