// Package classify determines what a call does: read, write or destroy. There are two sources:
//
//   - Arguments: SQL, shell, command lines of known programs, HTTP methods, GraphQL, action names. It also
//     detects which argument of a tool contains such a text.
//   - The definition of a tool without hints: name, title, description, schema (hints_*.go).
//
// Guarantees and limits:
//
//   - A verdict of "read" needs known words only: statements, functions, commands, options and verbs on
//     its lists. An unknown word is a write. A text that cannot be parsed completely is at least a write.
//     More than 64 KB, or too many commands, is destructive.
//   - SQL is parsed in every dialect, and the worst verdict counts. More than one statement is never a
//     read. A command reads only with options on its list.
//   - A verdict names the word that decided. Inferred hints have a reason.
//   - It is pure, deterministic, and its time is limited by the length of the text.
//   - It does not know what a name refers to (a view, a replaced program), executes and expands nothing,
//     and does not protect from a server that lies. Policy decides about the call.
//
// Files: verdict is the base; sql*, shell, programs, options, http, graphql and action classify one kind
// of text each; rule selects among them; lane classifies a call; detect finds rules in schemas; hints_*
// infer hints.
package classify
