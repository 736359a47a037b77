package result

import (
	"bytes"
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// StrictForm returns a result of a tool in the form that strict clients accept. They reject a result that violates the
// protocol's schema, so its content would be lost. A valid result, a task and a question are returned unchanged. Parts
// that clients could not read become text. If modern is set, structuredContent may be any value, not only an object.
func StrictForm(raw json.RawMessage, modern bool) json.RawMessage {
	if isPlain(raw, modern) {
		return raw
	}
	return repair(raw, modern)
}

// repair returns the result of StrictForm. It reads the result once for each member.
func repair(raw json.RawMessage, modern bool) json.RawMessage {
	if kind := wirejson.Find(raw, "resultType"); wirejson.Find(raw, "task") != nil || kind != nil && string(kind) != `"complete"` {
		return raw
	}
	out, structured := raw, wirejson.Find(raw, "structuredContent")
	content := wirejson.Find(raw, "content")
	strict := strictContent(content)
	if strict == nil {
		if strict = wirejson.Find(wirejson.Find(raw, "toolResult"), "content"); wirejson.Kind(strict) != '[' { // of a draft of the protocol
			strict = json.RawMessage("[]")
		}
		strict = strictContent(strict)
	}
	switch k := wirejson.Kind(structured); {
	case k == 0 || k == '{' || modern && k != 'n':
	case k == '[' && isEmpty(structured): // PHP writes [] for an empty object
		out = wirejson.SetMember(out, "structuredContent", json.RawMessage("{}"))
	case k == 'n':
		out = wirejson.DropMember(out, "structuredContent")
	}
	if !bytes.Equal(strict, content) {
		out = wirejson.SetMember(out, "content", strict)
	}
	if k := wirejson.Kind(wirejson.Find(out, "structuredContent")); k != 0 && k != '{' && !modern {
		out = WithoutStructuredContent(out)
	}
	if failed := wirejson.Find(out, "isError"); failed != nil && wirejson.Kind(failed) != 't' && wirejson.Kind(failed) != 'f' {
		if text := string(bytes.Trim(failed, `"`)); text == "true" || text == "1" {
			out = wirejson.SetMember(out, "isError", json.RawMessage("true"))
		} else {
			out = wirejson.DropMember(out, "isError")
		}
	}
	return dropUnlessObject(out, "_meta")
}

// isPlain reports whether a result is certainly valid. Most results are. isPlain reads such a result once, whereas the
// repair reads the whole result again for each member.
func isPlain(raw json.RawMessage, modern bool) bool {
	c := wirejson.Cursor{Text: raw}
	found, plain := false, true
	for end := c.Enter('{'); plain && c.More(end); {
		switch name := c.ReadName(); string(name) {
		case "content":
			found, plain = true, c.Peek() == '['
			for list := c.Enter('['); plain && c.More(list); {
				plain = readPlainBlock(&c)
			}
		case "structuredContent":
			k := wirejson.Kind(c.ReadValue())
			plain = k == '{' || modern && k != 'n'
		case "isError":
			k := wirejson.Kind(c.ReadValue())
			plain = k == 't' || k == 'f'
		case "_meta":
			plain = wirejson.Kind(c.ReadValue()) == '{'
		case "resultType":
			plain = string(c.ReadValue()) == `"complete"`
		case "task", "toolResult":
			plain = false
		default:
			plain = bytes.IndexByte(name, '\\') < 0 && c.ReadValue() != nil
		}
	}
	return plain && found && c.Finish() == nil
}

// readPlainBlock reads a block and reports whether it is certainly a valid text, image or audio block.
func readPlainBlock(c *wirejson.Cursor) bool {
	var kind []byte
	var text, data, media bool
	for end := c.Enter('{'); c.More(end); {
		name := c.ReadName()
		value := c.ReadValue()
		ok := wirejson.Kind(value) == '"'
		switch string(name) {
		case "type": // if it occurs twice, readers use different values
			ok, kind = ok && kind == nil, value
		case "text":
			text = ok
		case "data":
			ok = ok && !bytes.HasPrefix(value, dataURLStart)
			data = ok
		case "mimeType":
			media = ok
		case "_meta":
			ok = wirejson.Kind(value) == '{'
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	switch string(kind) {
	case `"text"`:
		return text
	case `"image"`, `"audio"`:
		return data && media
	}
	return false
}

// dataURLStart is the prefix of a data URL (RFC 2397).
var dataURLStart = []byte(`"data:`)

// WithoutStructuredContent returns a result without structuredContent. If there is no other content, structuredContent
// becomes text.
func WithoutStructuredContent(raw json.RawMessage) json.RawMessage {
	if isEmpty(wirejson.Find(raw, "content")) {
		shown := append(append(json.RawMessage("["), textBlock(string(wirejson.Find(raw, "structuredContent")))...), ']')
		raw = wirejson.SetMember(raw, "content", shown)
	}
	return wirejson.DropMember(raw, "structuredContent")
}

// isEmpty reports whether an array has no elements.
func isEmpty(array []byte) bool {
	return wirejson.Kind(array) == '[' && len(bytes.TrimSpace(array[1:len(array)-1])) == 0
}

// dropUnlessObject returns an object without the named member if that member is not an object.
func dropUnlessObject(object json.RawMessage, name string) json.RawMessage {
	if value := wirejson.Find(object, name); value != nil && wirejson.Kind(value) != '{' {
		return wirejson.DropMember(object, name)
	}
	return object
}

// textBlock returns a text block.
func textBlock(text string) json.RawMessage {
	return append(wirejson.AppendString(json.RawMessage(`{"type":"text","text":`), text), '}')
}

// strictContent returns the content of a result in strict form. Valid content is returned unchanged. It returns nil if
// there is no content.
func strictContent(content json.RawMessage) json.RawMessage {
	switch wirejson.Kind(content) {
	case 0, 'n':
		return nil
	case '[':
	default: // a single block instead of a list
		content = append(append(json.RawMessage("["), content...), ']')
	}
	valid, n := true, 0
	_ = wirejson.EachElement(content, func(block []byte) error { // parsing cannot fail: a result is valid JSON
		valid = valid && bytes.Equal(strictBlock(block), block)
		return nil
	})
	if valid {
		return content
	}
	out := json.RawMessage("[")
	_ = wirejson.EachElement(content, func(block []byte) error {
		if n++; n > 1 {
			out = append(out, ',')
		}
		out = append(out, strictBlock(block)...)
		return nil
	})
	return append(out, ']')
}

// strictBlock returns a block in the form that clients accept. A valid block is returned unchanged. A block that they
// could not read becomes text.
func strictBlock(block json.RawMessage) json.RawMessage {
	if text, ok := wirejson.String(block); ok {
		return textBlock(text)
	}
	isText := func(object []byte, names ...string) bool {
		for _, name := range names {
			if wirejson.Kind(wirejson.Find(object, name)) != '"' {
				return false
			}
		}
		return true
	}
	kind, _ := wirejson.String(wirejson.Find(block, "type"))
	resource := wirejson.Find(block, "resource")
	readable := false
	switch kind {
	case "text":
		readable = isText(block, "text")
	case "image", "audio":
		if readable = isText(block, "data", "mimeType"); !readable {
			return textBlock("The server sent an " + kind + " block without data or without a media type.")
		}
		if data := wirejson.Find(block, "data"); bytes.HasPrefix(data, dataURLStart) { // a data URL instead of the data
			if _, own, ok := bytes.Cut(data, []byte(",")); ok {
				block = wirejson.SetMember(block, "data", append(json.RawMessage(`"`), own...))
			}
		}
	case "resource":
		readable = isText(resource, "uri", "text") || isText(resource, "uri", "blob")
	case "resource_link":
		if readable = isText(block, "uri"); readable && !isText(block, "name") {
			block = wirejson.SetMember(block, "name", wirejson.Find(block, "uri"))
		}
	}
	if !readable {
		if text, ok := wirejson.String(wirejson.Find(block, "text")); ok {
			return textBlock(text)
		}
		return textBlock(string(block))
	}
	if kind == "resource" {
		if strict := dropUnlessKind(dropUnlessObject(resource, "_meta"), '"', "mimeType"); !bytes.Equal(strict, resource) {
			block = wirejson.SetMember(block, "resource", strict)
		}
	}
	block = dropUnlessObject(block, "_meta")
	block = dropUnlessStrict(dropUnlessObject(block, "annotations"), "annotations", mcp.StrictAnnotations)
	if kind != "resource_link" {
		return block
	}
	block = dropUnlessStrict(dropUnlessStrict(block, "icons", mcp.StrictIcons), "size", mcp.StrictInteger)
	return dropUnlessKind(block, '"', "mimeType", "title", "description")
}

// dropUnlessStrict returns an object with the named member in the form of a rule, or without it if it has no such form.
func dropUnlessStrict(object json.RawMessage, name string, rule mcp.StrictRule) json.RawMessage {
	strict, fault := mcp.ApplyStrict(object, []mcp.StrictMember{{Name: name, Rule: rule}})
	if fault != nil {
		return wirejson.DropMember(object, name)
	}
	return strict
}

// dropUnlessKind returns an object without those of the named members whose values have another JSON kind.
func dropUnlessKind(object json.RawMessage, kind byte, names ...string) json.RawMessage {
	for _, name := range names {
		if value := wirejson.Find(object, name); value != nil && wirejson.Kind(value) != kind {
			object = wirejson.DropMember(object, name)
		}
	}
	return object
}
