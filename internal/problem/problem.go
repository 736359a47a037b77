// Package problem defines the errors of the product: a code, a message, a hint (what to do) and details.
//
//   - A failure reads the same on every surface: the code alone determines the HTTP status, the JSON-RPC
//     code and the exit code of the CLI.
//   - It does no I/O, logs nothing and imports no other package of the product.
package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// Problem is one failure, as the user or the model reads it. Message says what failed; Hint, which may be
// empty, says what to do. Both are sentences or phrases without a trailing newline.
type Problem struct {
	Code    Code
	Message string
	Hint    string
	Details Details
	// Cause is the underlying error, for logs and errors.Is. It is never shown.
	Cause error
}

// Detail is a named fact about a Problem. Value must be encodable as JSON.
type Detail struct {
	Key   string
	Value any
}

// Details are encoded as a JSON object, in the order given.
type Details []Detail

// New returns a Problem.
func New(code Code, message, hint string) *Problem {
	return &Problem{Code: code, Message: message, Hint: hint}
}

// Newf is New without a hint and with a formatted message.
func Newf(code Code, format string, args ...any) *Problem {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint sets the hint and returns p.
func (p *Problem) WithHint(hint string) *Problem {
	p.Hint = hint
	return p
}

// With adds one detail and returns p.
func (p *Problem) With(key string, value any) *Problem {
	p.Details = append(p.Details, Detail{key, value})
	return p
}

// Because sets the cause and returns p.
func (p *Problem) Because(err error) *Problem {
	p.Cause = err
	return p
}

// Error returns only the message: the texts of the contract are exact.
func (p *Problem) Error() string { return p.Message }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Cause }

// Detail returns the value of the named detail, or nil.
func (p *Problem) Detail(key string) any {
	for _, d := range p.Details {
		if d.Key == key {
			return d.Value
		}
	}
	return nil
}

// From returns err as a Problem: the one that it is or wraps, otherwise an INTERNAL problem with err as
// its cause, whose text is not shown because it was not written for users. From(nil) is nil.
func From(err error) *Problem {
	if err == nil {
		return nil
	}
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return &Problem{Code: Internal, Message: "Something went wrong inside MCPProxy.",
		Hint: "See the log of the daemon for the cause.", Cause: err}
}

// MarshalJSON encodes the details as an object.
func (d Details) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, x := range d {
		if i > 0 {
			out = append(out, ',')
		}
		k, err := json.Marshal(x.Key)
		if err != nil {
			return nil, err
		}
		v, err := json.Marshal(x.Value)
		if err != nil {
			return nil, fmt.Errorf("detail %s: %w", x.Key, err)
		}
		out = append(append(append(out, k...), ':'), v...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON parses an object and keeps the raw values.
func (d *Details) UnmarshalJSON(raw []byte) error {
	*d = nil
	return wirejson.EachMember(bytes.Clone(raw), func(name, value []byte) error {
		*d = append(*d, Detail{string(name), json.RawMessage(value)})
		return nil
	})
}

// MarshalJSON returns {"code","message","hint"?,"details"?}, as in refusals, REST replies and -o json of
// the CLI.
func (p *Problem) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code    Code    `json:"code"`
		Message string  `json:"message"`
		Hint    string  `json:"hint,omitempty"`
		Details Details `json:"details,omitempty"`
	}{p.Code, p.Message, p.Hint, p.Details})
}

// ClipName is ClipForDisplay with the limit for unchecked names.
func ClipName(name string) string { return ClipForDisplay(name, maxBrief) }

// maxBrief limits such a name, in bytes.
const maxBrief = 200

// ClipForDisplay returns external text for a message or record: at most so many bytes, invalid UTF-8 replaced by
// U+FFFD, an ellipsis where it was cut.
func ClipForDisplay(s string, most int) string {
	shown := strings.ToValidUTF8(wirejson.ClipText(s, most), "\uFFFD")
	if len(s) > most {
		shown += "…"
	}
	return shown
}
