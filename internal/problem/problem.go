// Package problem defines the errors of the product: a code, a message, a hint (what to do) and details.
//
//   - A failure has the same text on every surface. The code alone determines the HTTP status, the JSON-RPC code and
//     the exit code of the CLI.
//   - The package does no I/O, logs nothing and imports no other package of the product.
package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// Problem is one failure, as shown to the user or the model. Message states what failed. Hint, which may be empty,
// states what to do. Both are sentences or phrases without a trailing newline.
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

// Newf returns a Problem with a formatted message and without a hint.
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

// Error returns only the message, without the hint.
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

// From returns err as a Problem. If err is or wraps a Problem, From returns that Problem. Otherwise it returns an
// INTERNAL problem with err as its cause. The text of err is not shown, because it was not written for users. From(nil)
// is nil.
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

// UnmarshalJSON parses a JSON object and keeps the values undecoded.
func (d *Details) UnmarshalJSON(raw []byte) error {
	*d = nil
	return wirejson.EachMember(bytes.Clone(raw), func(name, value []byte) error {
		*d = append(*d, Detail{string(name), json.RawMessage(value)})
		return nil
	})
}

// MarshalJSON returns {"code","message","hint"?,"details"?}. Refusals, REST replies and the CLI with -o json use this
// form.
func (p *Problem) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code    Code    `json:"code"`
		Message string  `json:"message"`
		Hint    string  `json:"hint,omitempty"`
		Details Details `json:"details,omitempty"`
	}{p.Code, p.Message, p.Hint, p.Details})
}

// ClipName returns a name that was not validated, cut to maxBrief bytes for display.
func ClipName(name string) string { return ClipForDisplay(name, maxBrief) }

// maxBrief limits a name that was not validated, in bytes.
const maxBrief = 200

// ClipForDisplay returns external text for a message or a record, cut to at most most bytes. It replaces invalid UTF-8
// by U+FFFD and appends an ellipsis if it cuts the text.
func ClipForDisplay(s string, most int) string {
	shown := strings.ToValidUTF8(wirejson.ClipText(s, most), "\uFFFD")
	if len(s) > most {
		shown += "…"
	}
	return shown
}
