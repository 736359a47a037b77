// Package sandbox limits what the process of a stdio server can do.
//
// Files:
//   - rules.go: Rules, the sandbox of a server, and its text for users.
//   - system.go: System: what this machine can enforce, and the command that starts a server in its sandbox.
//   - readable.go: the folders that a sandbox can read; secrets.txt lists those of the home folder that it cannot.
//   - template.go, template_node.go, template_python.go: what npx, uvx, node, python and other programs run and read.
//   - exec_linux.go: `mcpproxy sandbox-exec`, which restricts itself and then runs the server; syscalls_linux.go: its
//     system call filter; syscalls.txt lists the calls.
//   - container.go: the command line of docker and podman.
//   - suggest.go: proposes rules from the launch of a server and from what trial runs are denied.
//
// Guarantees:
//   - A server with rules starts with all of them in force, or not at all. Only best_effort allows less, and NotEnforced
//     says what is missing.
//   - The limits hold for all processes that the server starts.
//   - No sandbox can read the data directory or the configuration file of MCPProxy, or write to a folder that contains
//     them or one of the secrets.
//
// It does not limit CPU time, memory or disk space, and it does not inspect network traffic.
package sandbox
