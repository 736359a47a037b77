// Package classify determines what a call does: read, write or destroy. There are two sources:
//
//   - Arguments: SQL, shell, command lines of known programs, HTTP methods, GraphQL, action names. It also detects which
//     argument of a tool contains such a text.
//   - The definition of a tool without hints: name, title, description, schema (hints_*.go).
//
// Guarantees and limits:
//
//   - A verdict of "read" needs known words only: statements, functions, commands, options and verbs on its lists. An unknown
//     word is a write. A text that cannot be parsed completely is at least a write. More than 64 KB, or too many commands, is
//     destructive.
//   - SQL is parsed in every dialect, and the worst verdict counts. More than one statement is never a read. A command reads
//     only with options on its list.
//   - A verdict names the word that decided. Inferred hints have a reason.
//   - It is pure, deterministic, and its time is limited by the length of the text.
//   - It does not resolve names (a view, a replaced program), and executes and expands nothing. It does not protect from a
//     server that lies. Policy decides about the call.
//
// Files:
//
//   - classify_arguments.go: Classify, which classifies the arguments of a call; rule.go: which argument, and how
//   - detect.go: finds that argument in the schema of a tool; analysis.go: caches it per tool
//   - sql.go: classifies SQL; sqllex.go: tokens in all dialects; sqlstatement.go, sqlnest.go, sqlwords.go: statements, their
//     nesting and the word lists
//   - shell.go: classifies shell lines; shell_limits.go: their limits; programs.go, options.go: known programs with their verbs
//     and options; siblings.go: members next to a command
//   - http.go, graphql.go, action.go: HTTP methods, GraphQL, action names
//   - verdict.go: the result
//   - hints_effect.go: infers hints; hints_name.go, hints_description.go, hints_schema.go: analyze the name, the description
//     and the schema; hints_words.go: the lexicon
package classify
