// Package approval stores the decisions about servers, tools, prompts, resources and instructions: pinned
// definitions, blocked and switched-off tools, approved launches, proposals. Evaluate decides whether a new or
// changed definition is accepted automatically. Denylist (denylist*.go) keeps a second copy of every restriction in a
// file next to the database.
//
// Files:
//
//   - approval.go: the types of decisions; view.go: the immutable decisions about one server
//   - book.go: Book loads and stores; book_admit.go: accepts definitions that a server lists; decisions.go: decisions
//     of users
//   - evaluate.go: Evaluate; claims.go: the claims that users sign
//   - held_times.go: the times since when definitions wait
//   - denylist.go, denylist_file.go, denylist_read.go, denylist_entry.go: the file of restrictions
//   - diff.go, word_diff.go, summary.go: differences of two definitions
//
// Guarantees and limits:
//
//   - A decision is stored before it takes effect. If storing fails, it has no effect. A restriction is written to
//     the file before the database.
//   - After the loss of the database, or with an older one, blocked and switched-off tools stay locked. The file
//     approves nothing.
//   - A change that loosens a hint is never accepted automatically.
//   - Reading a ServerView takes no lock and does not allocate.
//   - The package does not compute a tool's status (policy does) and stores no waiting definitions (catalog does). It
//     does not protect against a program that can write the file.
package approval
