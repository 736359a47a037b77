// Package process starts, watches and stops the processes of servers, writes to them, and keeps their
// logs. start_*.go bound the starts: how many at a time, in which order, how long.
//
// Guarantees:
//   - A process starts without a shell, in its own group, with the allowed part of the environment. It
//     is always reaped. On Linux, processes that an earlier run left behind end at the next start.
//   - A writer never waits for the process. Logs hold no secrets and no terminal control sequences,
//     and are bounded in size and rate.
//   - A start that makes progress is not given up; one that makes none yields its slot. Two package
//     managers never fetch the same package into the same cache at once.
//
// It does not know what is said over the pipes, and does not decide which servers run.
package process
