// Package process starts, watches and stops the processes of servers, writes to them, and keeps their logs.
//
// Files:
//   - process.go: Process: start, pipes, stop; launcher.go starts all processes from one thread.
//   - exit_error.go: the errors of a process that did not start or has ended, with the line of stderr that explains it. Package
//     upstream (supervise.go) restarts it.
//   - process_registry_linux.go: records processes, and ends those that an earlier run left behind.
//   - start_watch.go: a slow start: why it waits, and when it is given up; start_queue.go: how many processes start at a time,
//     and in which order; start_runner.go: detects package managers; start_network.go: why a package cannot be fetched.
//   - environ.go: the environment of a server; FindCommand.
//   - pipe.go, pipe_unix.go: writes to stdin without blocking.
//   - log.go: the log file of a server; logline.go, logtext.go: its lines; logread.go reads it.
//   - mask.go: masks secrets of a server in text.
//   - run.go: runs a program to its end.
//
// Guarantees:
//   - A process starts without a shell, in its own group, with the allowed part of the environment. It is always reaped. On
//     Linux, processes that an earlier run left behind end at the next start.
//   - A writer never waits for the process. Logs hold no secrets and no terminal control sequences, and are bounded in size and
//     rate.
//   - A start that makes progress is not aborted. A start without progress gives up its slot. Two package managers never
//     fetch the same package into the same cache at once.
//
// It does not interpret the messages on the pipes, and does not decide which servers run.
package process
