// Package clients knows MCP clients and their files: names, paths on each system, formats, and the entry
// that makes a client use MCPProxy. import_*.go read the servers that a client has (JSON, JSON with
// comments, TOML, YAML) as entries of the configuration; userfile*.go change files with undo. Facts
// come from the vendors' documentation and source; docs/guide/clients.md says how sure each is.
//
// Guarantees:
//   - Only files at known paths are read, and of Continue all files of two folders. No path comes
//     from a request.
//   - A text is bounded in size, depth and number of servers. Each entry is valid for config, under a
//     unique name, with a note for everything that was changed or left out. It never grants trust.
//   - A change of a file can be undone byte for byte until the file is changed again.
//
// It starts nothing and resolves no references.
package clients
