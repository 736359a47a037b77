package config

import (
	"github.com/tailscale/hujson"

	"mcpproxy/internal/clients/textedit"
)

// byteOrderMark precedes the text in some editors' files.
const byteOrderMark = textedit.ByteOrderMark

// source is the text of a file, with positions.
type source struct {
	data []byte
}

// position returns the line and the column (in characters) of a byte.
func (s source) position(offset int) (line, column int) {
	return textedit.LineAndColumn(s.data, offset)
}

// mistake returns a Mistake at a byte of the text.
func (s source) mistake(offset int, path, message, hint string) Mistake {
	line, column := s.position(offset)
	return Mistake{line, column, path, message, hint}
}

// parse returns the syntax tree, or the syntax error.
func (s source) parse() (hujson.Value, *Mistake) {
	tree, wrong := textedit.ParseJSONC(s.data)
	if wrong != nil {
		m := s.mistake(wrong.Offset, "", wrong.Message, wrong.Hint)
		return hujson.Value{}, &m
	}
	return tree, nil
}
