// Package classify determines the effect of a call: read, write or destroy. It uses two sources:
//
//   - Arguments: SQL, shell, command lines of known programs, HTTP methods, GraphQL, action names. The package also
//     detects which argument of a tool contains such a text.
//   - The definition of a tool without hints: name, title, description, schema (hints_*.go).
//
// Guarantees and limits:
//
//   - A text is classified as "read" only if all its words are known: statements, functions, commands, options and
//     verbs on the lists. An unknown word is a write. A text that cannot be parsed completely is at least a write. A
//     text of more than 64 KB, or with too many commands, is destructive.
//   - SQL is parsed in every dialect, and the worst verdict counts. More than one statement is never a read. A
//     command is a read only with options on its list.
//   - A verdict contains the word that decided. Inferred hints have a reason.
//   - Classification is pure and deterministic, and its time is limited by the length of the text.
//   - The package does not resolve names (a view, a replaced program), and executes and expands nothing. It does not
//     protect against a server that lies. Policy decides about the call.
//
// Files:
//
//   - classify_arguments.go: Classify, which classifies the arguments of a call; rule.go: which argument, and how
//   - detect.go: finds that argument in the schema of a tool; analysis.go: caches it per tool
//   - sql.go: classifies SQL; sqllex.go: tokens in all dialects; sqldialects.go: how the dialects differ;
//     sqlstatement.go, sqlnest.go, sqlwords.go: statements, their nesting and the word lists; sqlclient.go: lines
//     that a client of the database executes
//   - shell.go: classifies shell lines; shell_words.go: the known part of a word; shell_programs.go: programs that
//     run others, and those with a language of their own; shell_limits.go: limits; programs.go, options.go: known
//     programs with their verbs and options; siblings.go: members next to a command
//   - http.go, graphql.go, action.go: HTTP methods, GraphQL, action names
//   - verdict.go: the result
//   - hints_effect.go: infers hints; hints_name.go, hints_description.go, hints_schema.go: analyze the name, the
//     description and the schema; hints_words.go: the lexicon
package classify
