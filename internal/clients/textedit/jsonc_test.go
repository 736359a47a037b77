package textedit

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		offset int
		want   string
	}{
		"comments":  {"// a\n{\"a\": [1, /* b */ 2,],} // c", -1, ""},
		"not UTF-8": {"{\"a\": \"\xff\"}", 7, "the file is not valid UTF-8"},
		"large":     {strings.Repeat(" ", MaxSize+1), 0, "the file is larger than 16777216 bytes"},
		"deep":      {strings.Repeat("[", maxDepth+1), maxDepth, "brackets are nested deeper than 32"},
		"empty":     {" // nothing\n", 0, "the file is empty"},
		"unclosed":  {"{\n[", 3, "the file ends too early"},
		"secret":    {"{\"a\": \"s3cret\\q\"}", 6, "the string holds a line break, a control character or an unknown escape"},
	} {
		t.Run(name, func(t *testing.T) {
			_, wrong := ParseJSONC([]byte(c.text))
			switch {
			case wrong == nil && c.want != "":
				t.Error("the text was accepted")
			case wrong != nil && (wrong.Message != c.want || wrong.Offset != c.offset):
				t.Errorf("got %+v", *wrong)
			}
		})
	}
	if line, column := LineAndColumn([]byte("ä\nßü{"), 7); line != 2 || column != 3 {
		t.Errorf("position of the brace: got %d:%d, want 2:3", line, column)
	}
}
