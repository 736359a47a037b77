// Package clients reads and edits the files of MCP clients: names, paths on each system,
// formats (table.go, clients.go), and MCPProxy's entry in them (entry.go, edit.go).
// import_*.go convert a client's servers (JSON, JSON with comments, TOML, YAML) into
// configuration entries; userfile*.go change files with undo. The facts come from the
// vendors' documentation and source; docs/guide/clients.md says how reliable each is.
//
// Guarantees:
//   - Only files at known paths are read, and of Continue all files of two folders. No
//     path comes from a request.
//   - A text is bounded in size, depth and number of servers. Each entry is valid for
//     config, under a unique name, with a note for everything that was changed or left
//     out. It never grants trust.
//   - A change of a file can be undone byte for byte until the file is changed again.
//
// It starts nothing and resolves no references.
package clients
