// Package clients reads and edits the files of MCP clients: names, paths on each system, formats, and MCPProxy's entry in them.
// It converts a client's servers (JSON, JSON with comments, TOML, YAML) into configuration entries. The facts come from the
// vendors' documentation and source; docs/reference/clients.md states how reliable each is.
//
// Files:
//   - clients.go, table.go, find.go, env.go: the known clients, their files, and their paths on each system
//   - client_doc.go, connection.go: read a client's file, and find MCPProxy's entry in it
//   - entry.go, edit.go: write, change and remove MCPProxy's entry
//   - import_paste.go, import_file.go, import_section*.go: find servers in a pasted text or a client's file
//   - import_json.go, import_toml.go, import_yaml.go, import_node.go, import_tree.go: parse each format into one tree with
//     positions
//   - import_command.go, import_shell.go: parse a command line
//   - import_builder.go, import_references.go, import_names.go: convert a server into a configuration entry
//   - userfile.go, userfile_journal.go, userfile_record.go: read and change files with undo
//
// Guarantees:
//   - Only files at known paths are read, and, for Continue, all files of two folders. No path comes from a request.
//   - The size, depth and number of servers of a text are limited. Each entry is valid for config, has a unique name,
//     and has a note for everything that was changed or left out. An entry never grants trust.
//   - A change of a file can be undone byte for byte until the file is changed again.
//
// It starts nothing and resolves no references.
package clients
