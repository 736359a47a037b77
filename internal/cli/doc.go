// Package cli is the command line. It converts arguments to requests to the daemon, and prints the answers for users
// and programs. The commands serve and demo run the daemon itself.
//
// Main files:
//   - cli.go: Run, the root command and its output format
//   - commands.go: the type of a command; commands.md: the texts of all commands
//   - invocation.go: one run of a command, with its flags and outputs; the client of the daemon, and the behavior of
//     commands without a daemon
//   - output.go, list.go, cells.go, printable.go: tables, JSON and YAML, with external texts made printable
//   - upstream*.go, tools.go, approvals.go, activity*.go, connect.go, token.go, config.go: commands, by object
//   - doctor.go, status.go, serve.go, stdio.go, service.go: the commands that run, install and check the daemon
//   - confirm.go, presence.go: questions before a change, and signatures that prove a user's decision
//
// Guarantees:
//   - Data goes to stdout, messages to stderr. -o json and -o yaml write the full data.
//   - The problem code determines the exit code.
//   - Text of servers cannot control the terminal. A browser is opened only for https and loopback addresses and for
//     files, as one argument to one program, never through a shell.
//
// Package cli makes no decisions: it shows the daemon's answers.
package cli
