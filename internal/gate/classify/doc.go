// Package classify says what a call does by its arguments: whether it reads, writes or
// destroys. It reads SQL, shell lines, command lines of known programs, HTTP methods,
// GraphQL and the names of actions, and finds out which argument of a tool is one.
//
// It guarantees that what is judged to read consists of what it knows: statements,
// functions, commands, options and verbs that stand in its lists. What it does not know is
// a write; what is known to take away is destructive; what it cannot read to its end is
// never less than a write, and what is longer than 64 KB, or a shell text of more commands
// or words than anybody reads, is destructive. SQL is read as every database would read it
// (where quotes and comments end), and the worst reading counts; several statements are
// never a read. A command reads only with the options on its list; one that runs another
// counts as that one, and arguments in other members count with it. Each verdict names the
// word that decided. It is pure and deterministic, and bounded in time by the length of the
// text.
//
// It does not know what is behind a name: a view, a function, an operator or a program
// that stands in its lists and was replaced by another. It does not run, resolve or
// expand anything, and it does not decide about calls; policy does.
//
// verdict is at the bottom; the readers of each language use it (sql on its words and lexer;
// shell on programs on options; http, graphql, action), rule picks the reader, and on rule are
// lane, which judges a call, neighbours, which reads what is next to a command, and detect,
// which finds rules in schemas.
package classify
