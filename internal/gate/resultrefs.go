package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/redact"
)

// The limits of results in the arguments of a call.
const (
	maxResultRefs     = 16
	maxResultRefBytes = 16 << 20 // size of all referenced results together
)

// resultKey is the member of arguments that refers to a stored result.
const resultKey = "$result"

// resultRef refers to a stored result in the arguments: {"$result": handle, "path": path}.
type resultRef struct {
	from, to     int // position in the arguments
	handle, path string
	value        []byte // set by insertResults
	origin       tool.ID
}

// findResultRefs finds the references in arguments that have passed wirejson.Check.
func findResultRefs(args json.RawMessage) (all []resultRef) {
	if !wirejson.MayContain(args, resultKey) {
		return nil
	}
	c := wirejson.Cursor{Text: args}
	var walk func()
	walk = func() {
		ahead := c
		kind := c.Peek()
		if kind == '{' {
			value := ahead.ReadValue()
			if h, ok := parseResultRef(value); ok {
				h.from, h.to = ahead.Offset()-len(value), ahead.Offset()
				all, c = append(all, h), ahead
				return
			}
		}
		if kind != '{' && kind != '[' {
			c.ReadValue()
			return
		}
		for end := c.Enter(kind); c.More(end); {
			if kind == '{' {
				c.ReadName()
			}
			walk()
		}
	}
	walk()
	return all
}

// parseResultRef parses an object with exactly the two members of a reference.
func parseResultRef(object []byte) (h resultRef, ok bool) {
	members, named := 0, 0
	_ = wirejson.EachMember(object, func(name, value []byte) error {
		members++
		text, isText := wirejson.String(value)
		switch {
		case string(name) == resultKey && isText:
			h.handle = text
			named++
		case string(name) == "path" && isText:
			h.path = text
			named++
		}
		return nil
	})
	return h, members == 2 && named == 2
}

// replaceResultRefs returns the arguments with each reference replaced.
func replaceResultRefs(args json.RawMessage, all []resultRef, by func(h *resultRef) []byte) json.RawMessage {
	var out []byte
	at := 0
	for i := range all {
		out = append(append(out, args[at:all[i].from]...), by(&all[i])...)
		at = all[i].to
	}
	return append(out, args[at:]...)
}

// The limits of the excerpt that a reviewer sees, in bytes: before and after masking.
const (
	maxMasked  = 8 << 10
	maxExcerpt = 500
)

// toReviewJSON is toRecordJSON with the beginning of the masked value.
func (h *resultRef) toReviewJSON() []byte {
	text := wirejson.ClipText(redact.Text(wirejson.ClipText(string(h.value), maxMasked)), maxExcerpt)
	out := bytes.TrimSuffix(h.toRecordJSON(), []byte("}}"))
	return append(wirejson.AppendString(append(out, `,"excerpt":`...), text), "}}"...)
}

// toRecordJSON returns the form of the reference in the record: the origin and digest of the result. It never
// contains the handle, which is a secret.
func (h *resultRef) toRecordJSON() []byte {
	digest := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	out := fmt.Sprintf(`{"$result":{"handle_sha256":"%s","path":%s`, digest([]byte(h.handle)), wirejson.AppendString(nil, h.path))
	if h.value != nil {
		out += fmt.Sprintf(`,"from":%s,"bytes":%d,"sha256":"%s"`, wirejson.AppendString(nil, h.origin.String()), len(h.value), digest(h.value))
	}
	return []byte(out + "}}")
}
