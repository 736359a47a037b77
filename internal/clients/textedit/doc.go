// Package textedit changes one entry in a text of JSON with comments, TOML or YAML, and no other byte. Comments, order,
// alignment, line ends and the byte order mark are kept.
//
// Files:
//   - textedit.go, text.go: get, set and remove a value by path in any format
//   - json.go, toml.go, toml_write.go, yaml.go: the editor of each format
//   - jsonc.go, jsonc_document.go: parse JSON with comments, and compute splices of its text
//   - subtract.go, difference.go: undo a change in a text that has changed since; show a line difference
//
// Guarantees:
//   - The result is parsed again and compared: it differs only in that entry. A text that cannot be edited in this way
//     is rejected, with the position and a fix.
//   - The size and depth of a text are limited, and it must be UTF-8. An error never contains text of the file, which
//     may be a secret.
//
// It opens no files and has no list of known keys.
package textedit
