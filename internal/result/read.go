package result

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
)

// What Read returns at once: by default, and at most. A part is bounded in bytes
// also where it is counted in elements.
const (
	DefaultBytes    = 20_000
	DefaultElements = 100
	MaxBytes        = 50_000
)

// The units that a value is paged by.
const (
	Bytes    = "bytes"
	Elements = "elements"
)

// Part is a part of a result. The contents of the parts from offset 0 on, each
// at the next_offset of the one before, are together the whole value: strings
// to be joined, arrays to be appended.
type Part struct {
	Path       string          `json:"path,omitempty"` // of the value; none for the whole result
	Offset     int             `json:"offset"`
	NextOffset int             `json:"next_offset,omitempty"` // none at the end
	Total      int             `json:"total"`
	Unit       string          `json:"unit"`
	Content    json.RawMessage `json:"content"` // a string, or an array of elements
}

// Read returns a part of a whole result. Without a path it pages over the JSON
// text of the result by bytes, between characters. With a path it pages over
// the value there: an array by elements, a string by the bytes of its text,
// any other value by the bytes of its JSON. A limit of 0 is the default.
func Read(raw json.RawMessage, path string, offset, limit int) (Part, error) {
	if offset < 0 {
		return Part{}, badParameter("offset", offset, "offset must not be negative.", "an offset of 0 or more")
	}
	if limit < 0 {
		return Part{}, badParameter("limit", limit, "limit must not be negative.", "a limit of 1 or more, or none")
	}
	if path == "" || path == "$" {
		return textPart(Part{}, raw, offset, limit)
	}
	at, err := lookUp(raw, path)
	if err != nil {
		return Part{}, err
	}
	p := Part{Path: at.path.String()}
	switch v := at.value; v[0] {
	case '[':
		return elementsPart(p, v, offset, limit)
	case '"':
		return textPart(p, rawjson.Unescape(v[1:len(v)-1]), offset, limit)
	default:
		return textPart(p, v, offset, limit)
	}
}

// textPart pages by bytes. A part begins and ends between characters, and has
// one at least.
func textPart(p Part, text []byte, offset, limit int) (Part, error) {
	p.Unit, p.Total = Bytes, len(text)
	if err := checkOffset(offset, p); err != nil {
		return Part{}, err
	}
	if limit == 0 {
		limit = DefaultBytes
	}
	start := boundary(text, offset)
	end := len(text)
	if limit = min(limit, MaxBytes); end-start > limit {
		if end = boundary(text, start+limit); end <= start {
			_, size := utf8.DecodeRune(text[start:])
			end = start + size
		}
	}
	if end < len(text) {
		p.NextOffset = end
	}
	p.Offset = start
	p.Content = rawjson.AppendString(nil, text[start:end])
	return p, nil
}

// boundary returns the start of the character that is at i.
func boundary(text []byte, i int) int {
	if i >= len(text) {
		return len(text)
	}
	for j := i; j >= 0 && i-j < utf8.UTFMax; j-- {
		if utf8.RuneStart(text[j]) {
			if _, size := utf8.DecodeRune(text[j:]); j+size > i {
				return j
			}
			break
		}
	}
	return i
}

func checkOffset(offset int, p Part) error {
	if offset < p.Total || offset == 0 {
		return nil
	}
	return badParameter("offset", offset, fmt.Sprintf("offset %d is at or after the end: there are %d %s.", offset, p.Total, p.Unit),
		fmt.Sprintf("an offset from 0 to %d", max(p.Total-1, 0)))
}

// elementsPart pages by elements.
func elementsPart(p Part, v []byte, offset, limit int) (Part, error) {
	p.Unit, p.Offset = Elements, offset
	if limit == 0 {
		limit = DefaultElements
	}
	out := []byte{'['}
	end := offset // of the part
	var tooLarge int
	ok := each(v, func(m member) bool {
		i := p.Total
		p.Total++
		if i != end || i-offset >= limit {
			return true
		}
		switch {
		case len(out)+len(m.value) <= MaxBytes:
			if i > offset {
				out = append(out, ',')
			}
			out = append(out, m.value...)
			end++
		case i == offset:
			tooLarge = len(m.value)
		}
		return true
	})
	if err := checkOffset(offset, p); err != nil {
		return Part{}, err
	}
	if tooLarge > 0 {
		return Part{}, elementTooLarge(p, tooLarge)
	}
	if end < p.Total {
		p.NextOffset = end
	}
	if p.Content = append(out, ']'); !ok || !json.Valid(p.Content) {
		return Part{}, problem.New(problem.InvalidParameter, "What is at "+p.Path+" is not valid JSON.", "Read the result without a path.").
			With("parameter", "path").With("value", p.Path).With("allowed", "no path")
	}
	return p, nil
}

func elementTooLarge(p Part, size int) error {
	path := fmt.Sprintf("%s[%d]", p.Path, p.Offset)
	return badParameter("path", p.Path, fmt.Sprintf("The element at offset %d has %d bytes, more than the %d that are given at once.", p.Offset, size, MaxBytes),
		fmt.Sprintf("the path %s to read this element, or the offset %d to pass over it", path, p.Offset+1))
}
