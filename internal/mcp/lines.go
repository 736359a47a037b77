package mcp

// The words of lines, which is how `mcpproxy stdio` speaks with the daemon: an
// upgrade of HTTP on the socket, and then a message a line in both directions. A
// line that begins with neither a brace nor a bracket is between the two
// themselves.
const (
	// Lines is what the connection is upgraded to.
	Lines = "mcpproxy-lines/1"
	// LineEnd is the client's last line: what has no end is ended, what was asked is
	// answered, and then the daemon closes the connection.
	LineEnd = "end"
	// LineOver says, before the answer to a request on the same line, that this was
	// not acted on since the session has ended. The daemon answers what else it was
	// asked, and closes the connection: a new one takes a new session.
	LineOver = "over"
	// LineBatch says, with a space and the number of a batch, and another space
	// before the answers on the same line, that the batch is answered. There may be
	// no answers. Batches are counted from 1 as they come.
	LineBatch = "batch"
)
