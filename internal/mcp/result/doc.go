// Package result cuts a tool result that is larger than the limit, pages through the whole of it, and
// selects from it with expressions of jq (select_*.go).
//
// Guarantees:
//   - A cut result is valid JSON and a valid CallToolResult. Text is cut between characters, never
//     inside an image. The place of each gap says how to read on, and the parts together give the whole.
//   - An expression is compiled only if it always ends: no recursion, loops, definitions, ranges,
//     environment or clock. It is bounded by MaxTime, MaxWork and MaxMade. Values keep their bytes.
//   - No error repeats data.
//
// It stores nothing: gate makes the handle, store keeps the result.
//
// Files: scan, text, step and gap (base); shrink, block and cut make results small; path and read page
// through them. select_run bounds, select_lex and select_parse compile, select_eval evaluates.
package result
