package mcp

// The line protocol between `mcpproxy stdio` and the daemon: an HTTP upgrade on the socket, then one
// message per line in both directions. A line that begins with neither a brace nor a bracket is a control
// line between the two.
const (
	// LineProtocol is the value of the Upgrade header.
	LineProtocol = "mcpproxy-lines/1"
	// LineEnd is the last line of the client: the daemon cancels endless requests, answers the others and
	// closes the connection.
	LineEnd = "end"
	// LineSessionEnded precedes the answer to a request on the same line. It means that the request was not executed
	// because the session has ended. The daemon answers the remaining requests and closes the connection. A new
	// connection opens a new session.
	LineSessionEnded = "over"
	// LineBatch, a space and the number of a batch mean that the batch is answered. A second space precedes the answers
	// on the same line, if there are any. Batches are counted from 1 in the order of arrival.
	LineBatch = "batch"
)
