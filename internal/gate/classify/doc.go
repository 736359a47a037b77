// Package classify finds out what a call does: it reads, writes or destroys. Two sources:
//   - Arguments: SQL, shell, command lines of known programs, HTTP methods, GraphQL, action names.
//     It also finds which argument of a tool holds such a text.
//   - The definition of a tool without hints: name, title, description, schema (hints_*.go).
//
// Guarantees:
//   - A verdict of "read" needs known words only: statements, functions, commands, options and verbs
//     on its lists. An unknown word is a write. A text that cannot be parsed to its end is at least a
//     write. More than 64 KB, or too many commands, is destructive.
//   - SQL is parsed as every database would parse it, and the worst reading counts. More than one
//     statement is never a read. A command reads only with options on its list.
//   - A verdict names the word that decided. Inferred hints give their reason.
//   - It is pure, deterministic, and bounded in time by the length of the text.
//
// It does not know what a name refers to (a view, a replaced program), runs and expands nothing, and
// does not protect from a server that lies. Policy decides about the call.
//
// Files: verdict (base), sql*, shell and programs, options, http, graphql, action; rule picks the
// reader; lane judges a call; detect finds rules in schemas; hints_* infer hints.
package classify
