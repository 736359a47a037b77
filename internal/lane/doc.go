// Package lane says what a call does by its arguments: whether it reads, writes or
// destroys. It reads SQL, shell lines, command lines of known programs, HTTP methods,
// GraphQL and the names of actions, and finds out which argument of a tool is one.
//
// It guarantees that what is judged to read consists of what it knows: statements,
// functions, commands, options and verbs that stand in its lists. What it does not know is
// a write; what is known to take away is destructive; what it cannot read to its end is
// never less than a write, and what is longer than 64 KB, or a shell text of more commands
// or words than anybody reads, is destructive. SQL is read as every database would read it
// (where quotes and comments end), and the worst reading counts; several statements are
// never a read. Each verdict names the word that decided. It is pure and deterministic,
// and bounded in time by the length of the text.
//
// It does not know what is behind a name: a view, a function, an operator or a program
// that stands in its lists and was replaced by another. It does not run, resolve or
// expand anything, and it does not decide about calls; policy does.
//
// On verdict stand the readers of each language (sql on its words and lexer; shell on
// programs; http, graphql, action), and on these lane, which knows
// rules, and detect, which finds them in schemas.
package lane
