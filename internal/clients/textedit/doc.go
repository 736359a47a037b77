// Package textedit changes one entry in a text of JSON with comments, TOML or YAML, and no other byte. Comments, order,
// alignment, line ends and byte order mark stay.
//
// Files:
//   - textedit.go, text.go: get, set and remove a value by path in any format
//   - json.go, toml.go, toml_write.go, yaml.go: the editor of each format
//   - jsonc.go, jsonc_document.go: parse JSON with comments, and compute splices of its text
//   - subtract.go, difference.go: undo a change in a text that has changed since; show a line difference
//
// Guarantees:
//   - The result is parsed again and compared: it differs in that entry alone. A text that cannot be edited like that is
//     rejected, with the position and the fix.
//   - A text is bounded in size and depth, and must be UTF-8. A mistake never repeats text of the file, which may be a secret.
//
// It opens no files and knows no keys.
package textedit
