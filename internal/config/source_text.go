package config

import (
	"github.com/tailscale/hujson"

	"mcpproxy/internal/clients/textedit"
)

// byteOrderMark precedes the text in some editors' files.
const byteOrderMark = textedit.ByteOrderMark

// sourceText is the text of a file, with positions.
type sourceText struct {
	data []byte
}

// position returns the line and the column (in characters) of a byte.
func (s sourceText) position(offset int) (line, column int) {
	return textedit.LineAndColumn(s.data, offset)
}

// newMistake returns a Mistake at a byte of the text.
func (s sourceText) newMistake(offset int, path, message, hint string) Mistake {
	line, column := s.position(offset)
	return Mistake{line, column, path, message, hint}
}

// parseTree returns the syntax tree, or the syntax error.
func (s sourceText) parseTree() (hujson.Value, *Mistake) {
	tree, wrong := textedit.ParseJSONC(s.data)
	if wrong != nil {
		m := s.newMistake(wrong.Offset, "", wrong.Message, wrong.Hint)
		return hujson.Value{}, &m
	}
	return tree, nil
}
