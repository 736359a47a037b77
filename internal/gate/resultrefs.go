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

// The bounds of results that are put into the arguments of a call.
const (
	maxResultRefs     = 16
	maxResultRefBytes = 16 << 20 // together
)

// resultKey is the member that names a result in arguments.
const resultKey = "$result"

// resultRef is a result that is to be put into arguments: {"$result": handle, "path": path}.
type resultRef struct {
	from, to     int // where it stands
	handle, path string
	value        []byte // once it is known
	origin       tool.ID
}

// resultRefsIn finds the results that arguments name, which have passed wirejson.Check.
func resultRefsIn(args json.RawMessage) (all []resultRef) {
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
			if h, ok := readResultRef(value); ok {
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

// readResultRef reads an object with exactly the two members that name a result.
func readResultRef(object []byte) (h resultRef, ok bool) {
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

// replaced returns the arguments with something else in the place of each named result.
func replaced(args json.RawMessage, all []resultRef, by func(h *resultRef) []byte) json.RawMessage {
	var out []byte
	at := 0
	for i := range all {
		out = append(append(out, args[at:all[i].from]...), by(&all[i])...)
		at = all[i].to
	}
	return append(out, args[at:]...)
}

// The bounds of what a person sees of a result, in bytes: of what is masked, and then of
// that.
const (
	maxMasked  = 8 << 10
	maxExcerpt = 500
)

// excerpted is shown with the beginning of the value.
func (h *resultRef) excerpted() []byte {
	text := wirejson.ClipText(redact.Text(wirejson.ClipText(string(h.value), maxMasked)), maxExcerpt)
	out := bytes.TrimSuffix(h.shown(), []byte("}}"))
	return append(wirejson.AppendString(append(out, `,"excerpt":`...), text), "}}"...)
}

// shown is what the record has in the place of a result: where it is from and what stands
// for it, and never the handle, which is a secret.
func (h *resultRef) shown() []byte {
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
