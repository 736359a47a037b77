// Package textedit changes one entry in a text of JSON with comments, TOML or YAML and no
// other byte: comments, order, alignment, line ends and byte order mark stay. textedit.go
// is the API; jsonc.go parses JSON with comments into a tree with positions.
//
// Guarantees:
//   - The result is parsed again and compared: it differs in that entry alone. A text
//     that cannot be edited like that is rejected, with the position and the fix.
//   - A text is bounded in size and depth, and must be UTF-8. A mistake never repeats
//     text of the file, which may be a secret.
//
// It opens no files and knows no keys.
package textedit
