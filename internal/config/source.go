package config

import (
	"github.com/tailscale/hujson"

	"mcpproxy/internal/clients/textedit"
)

// byteOrderMark is what some editors put before the text.
const byteOrderMark = textedit.ByteOrderMark

// source is the text of a file, and finds lines and columns in it.
type source struct {
	data []byte
}

// position returns the line and the column (in characters) of a byte.
func (s source) position(offset int) (line, column int) { return textedit.Position(s.data, offset) }

// mistake is a Mistake at a byte of the text.
func (s source) mistake(offset int, path, message, hint string) Mistake {
	line, column := s.position(offset)
	return Mistake{line, column, path, message, hint}
}

// parse returns the syntax tree, or the one mistake that keeps it from being
// read.
func (s source) parse() (hujson.Value, *Mistake) {
	tree, wrong := textedit.Parse(s.data)
	if wrong != nil {
		m := s.mistake(wrong.Offset, "", wrong.Message, wrong.Hint)
		return hujson.Value{}, &m
	}
	return tree, nil
}
