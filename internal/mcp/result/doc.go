// Package result cuts a tool result that is larger than the limit, pages through the full result, and
// selects from it with jq expressions (select_*.go).
//
//   - A cut result is valid JSON and a valid CallToolResult. Text is cut between characters, images never.
//     Each gap says how to read on, and the parts together are the full result.
//   - An expression compiles only if it always terminates: no recursion, loops, definitions, ranges,
//     environment or clock. Its time, work and memory are limited (MaxTime, maxWork, maxMade). Values keep
//     their bytes.
//   - StrictForm keeps what clients can read, and shows the rest as text.
//   - No error repeats data.
//   - It stores nothing: gate makes the handle, store keeps the result.
//
// Files: scan, text, step and gap are the base; shrink, block and cut shorten results; path and read page
// through them; strict repairs what clients reject; select_run has the limits, select_lex and select_parse compile, select_eval evaluates.
package result
