package result

import (
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// The default and maximum sizes of a part. Every part is also limited in bytes.
const (
	defaultCharacters = 20_000
	defaultElements   = 100
	maxBytes          = 50_000
)

// Part is a part of a result. The first part is at offset 0, and each next part at next_offset. The contents of all
// parts form the whole value: texts to concatenate, arrays and objects to append.
type Part struct {
	Path       string          `json:"path,omitempty"` // path of the value; empty for the whole result
	Offset     int             `json:"offset"`
	NextOffset int             `json:"next_offset,omitempty"` // missing at the end
	Total      int             `json:"total"`
	Unit       string          `json:"unit"`
	Content    json.RawMessage `json:"content"` // a string, an array of elements or an object of members
	// Continue contains, for each omission, the instructions for reading on.
	Continue []string `json:"continue,omitempty"`
}

// ReadOptions are the options of ReadPart. The instructions in Continue contain the handle.
type ReadOptions struct {
	Handle, Path  string
	Offset, Limit int
}

// ReadPart returns a part of a full result. Without a path, it pages over its JSON text by characters. With a path, it
// pages over the value: an array by elements, an object by members, and others by characters of their text. The values
// of a path with [*] or slices form an array. A limit of 0 means the default.
func ReadPart(raw json.RawMessage, f ReadOptions) (Part, error) {
	if f.Offset < 0 {
		return Part{}, newParameterError("offset", f.Offset, "offset must not be negative.", "an offset of 0 or more")
	}
	if f.Limit < 0 {
		return Part{}, newParameterError("limit", f.Limit, "limit must not be negative.", "a limit of 1 or more, or none")
	}
	if f.Path == "" || f.Path == "$" {
		f.Path = ""
		return f.readText(Part{}, raw)
	}
	to, err := resolvePath(raw, f.Path)
	if err != nil {
		return Part{}, err
	}
	if !to.isSingleValue() {
		return f.readValues(to)
	}
	at, err := to.singleValue(f.Path)
	if err != nil {
		return Part{}, err
	}
	p := Part{Path: at.pathText()}
	switch v := at.value; v[0] {
	case '[', '{':
		return f.readEntries(p, v[0], func(yield func(name []byte, at locatedValue) bool) error {
			eachEntry(v, func(i int, e jsonEntry) bool {
				return yield(e.name, locatedValue{e.value, append(at.at, e.toStep(i))})
			})
			return nil
		})
	case '"':
		return f.readText(p, wirejson.Unescape(v[1:len(v)-1]))
	default:
		return f.readText(p, v)
	}
}

// readValues pages over all values of a path.
func (f ReadOptions) readValues(to pathTarget) (Part, error) {
	p := Part{Path: locatedValue{at: append(to.root.at[:len(to.root.at):len(to.root.at)], to.steps...)}.pathText()}
	return f.readEntries(p, '[', func(yield func(name []byte, at locatedValue) bool) error {
		w := pathWalker{at: to.root.at[:len(to.root.at):len(to.root.at)], fn: func(at locatedValue) bool { return yield(nil, at) }}
		w.walkFrom(to.root.value, to.steps)
		return w.noMatchError(f.Path)
	})
}

// readText pages by characters.
func (f ReadOptions) readText(p Part, text []byte) (Part, error) {
	p.Unit, p.Total, p.Offset = Characters, utf8.RuneCount(text), f.Offset
	if err := checkOffset(p); err != nil {
		return Part{}, err
	}
	limit := f.Limit
	if limit == 0 {
		limit = defaultCharacters
	}
	for range f.Offset {
		_, size := utf8.DecodeRune(text)
		text = text[size:]
	}
	n, end := 0, 0
	for n < limit && end < len(text) {
		_, size := utf8.DecodeRune(text[end:])
		if end+size > maxBytes {
			break
		}
		n, end = n+1, end+size
	}
	p.Content = wirejson.AppendString(nil, text[:end])
	f.setNextOffset(&p, f.Offset+n)
	return p, nil
}

// setNextOffset sets the offset of the next part.
func (f ReadOptions) setNextOffset(p *Part, next int) {
	if next < p.Total {
		p.NextOffset = next
		p.Continue = append(p.Continue, omission{f.Path, next, p.Total, p.Unit}.continueLine(f.Handle))
	}
}

func checkOffset(p Part) error {
	if p.Offset < p.Total || p.Offset == 0 {
		return nil
	}
	return newParameterError("offset", p.Offset, fmt.Sprintf("offset %d is at or after the end: there are %d %s.", p.Offset, p.Total, p.Unit),
		fmt.Sprintf("an offset from 0 to %d", max(p.Total-1, 0)))
}

// readEntries pages by elements or members. A single entry over the limit is shortened, and the part contains
// instructions for reading the rest.
func (f ReadOptions) readEntries(p Part, bracket byte, all func(yield func(name []byte, at locatedValue) bool) error) (Part, error) {
	p.Unit, p.Offset = entryUnit([]byte{bracket}), f.Offset
	limit := f.Limit
	if limit == 0 {
		limit = defaultElements
	}
	s := shrinker{handle: f.Handle, most: math.MaxInt32, path: func(at []pathStep) string { return formatPath(at...) }}
	out := []byte{bracket}
	end := f.Offset // end of the part
	var tooLarge error
	err := all(func(name []byte, at locatedValue) bool {
		i := p.Total
		p.Total++
		if i != end || i-f.Offset >= limit || tooLarge != nil {
			return true
		}
		start := len(out)
		if i > f.Offset {
			out = append(out, ',')
		}
		if bracket == '{' {
			out = appendMemberName(out, name)
		}
		switch {
		case len(out)+len(at.value) <= maxBytes:
			out = append(out, at.value...)
			end++
		case i > f.Offset:
			out, limit = out[:start], 0
		default:
			s.at = at.at
			small, gaps, ok := s.shrink(at.value, maxBytes-len(out))
			if !ok {
				tooLarge = f.newTooLargeError(p, len(at.value), at.pathText())
				return true
			}
			out = append(out, small...)
			for _, g := range gaps {
				p.Continue = append(p.Continue, g.continueLine(f.Handle))
			}
			end, limit = end+1, 0
		}
		return true
	})
	if err == nil {
		err = checkOffset(p)
	}
	if err == nil {
		err = tooLarge
	}
	if err != nil {
		return Part{}, err
	}
	if p.Content = append(out, bracket+2); !json.Valid(p.Content) {
		return Part{}, problem.New(problem.InvalidParameter, "What is at "+p.Path+" is not valid JSON.", "Read the result without a path.").
			With("parameter", "path").With("value", p.Path).With("allowed", "no path")
	}
	f.setNextOffset(&p, end)
	return p, nil
}

func (f ReadOptions) newTooLargeError(p Part, size int, path string) error {
	return newParameterError("path", p.Path, fmt.Sprintf("The value at offset %d has %d bytes, more than the limit of %d.", p.Offset, size, maxBytes),
		fmt.Sprintf("the path %s to read it alone, or the offset %d to skip it", path, p.Offset+1))
}
