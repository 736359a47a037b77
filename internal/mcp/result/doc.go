// Package result cuts a tool result that is larger than the limit, pages through the full result, and
// selects from it with jq expressions (select_*.go).
//
//   - A cut result is valid JSON and a valid CallToolResult. Text is cut between characters. Images are never cut. Each
//     gap has instructions for reading on, and the parts together are the full result.
//   - An expression compiles only if it always terminates: no recursion, loops, definitions, ranges, environment or
//     clock. Its time, work and memory are limited (maxTime, maxWork, maxMade). Values keep their bytes. The parser is
//     that of github.com/itchyny/gojq.
//   - StrictForm keeps the parts that clients can read, and converts the rest to text.
//   - No error contains data.
//   - It stores nothing: gate creates the handle, and store keeps the result.
//
// Files: scan, text, step and gap are the base; shrink, block and cut shorten results; path and read page through them;
// strict repairs results that clients reject; select_run has the limits, select_parse compiles, select_eval evaluates;
// select_functions, select_strings, select_entries, select_sort and select_delete are the functions.
package result
