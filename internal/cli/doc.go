// Package cli is the command line. It converts arguments to requests to the daemon (or runs serve or demo), and prints the
// answers for users and programs.
//
// Main files:
//   - cli.go: Run, the root command and its output format; commands.go: the type of a command, with its texts in commands.md
//   - invocation.go: one run of a command: its flags, its client of the REST API, its output
//   - daemon.go: the client of the daemon, and the behaviour of commands without a daemon
//   - output.go, cells.go, visible.go, printable.go: tables, JSON and YAML; text of servers without control characters
//   - upstream*.go, tools*.go, approvals.go, activity*.go, connect.go, token.go, config.go: the commands of that noun
//   - doctor.go, status.go, serve.go, stdio.go, service.go: the commands of the daemon and its installation
//   - confirm.go, sign.go, presence.go: questions before a change, and proofs that a user decided
//
// Guarantees:
//   - Data goes to stdout, messages to stderr. -o json and -o yaml write the full data.
//   - The exit code follows from the code of the problem.
//   - Text of servers cannot control the terminal. A browser is opened only for https and loopback addresses and for files, as
//     one argument to one program, never through a shell.
//
// It makes no decisions: it shows the daemon's answers.
package cli
