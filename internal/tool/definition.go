package tool

import "encoding/json"

// Definition is a tool as its server declared it. Raw is the tool object with
// the server's bytes; the other fields are views of it. A Definition is
// immutable: nobody writes to any of its slices.
type Definition struct {
	ID           ID
	Raw          json.RawMessage
	Title        string
	Description  string
	InputSchema  json.RawMessage // nil when the server sent none
	OutputSchema json.RawMessage // nil when the server sent none
	Hints        Hints           // as declared
}

// Fingerprint is the SHA-256 of the canonical JSON of a definition.
type Fingerprint [32]byte
