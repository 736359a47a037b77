// Package cli is the command line: it converts arguments to requests to the daemon (or runs serve or demo) and prints the answers for users and
// programs.
//
// Guarantees:
//   - Data goes to stdout, messages to stderr. -o json and -o yaml write the full data.
//   - The exit code follows from the code of the problem.
//   - Text of servers cannot control the terminal. A browser is opened only for https and loopback addresses and for files, as one
//     argument to one program, never through a shell.
//
// It makes no decisions: it shows what the daemon answers.
package cli
