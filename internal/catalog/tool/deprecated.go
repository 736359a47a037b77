package tool

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"mcpproxy/internal/mcp/wirejson"
)

// deprecation matches a sentence that begins with the word, as in "DEPRECATED: use x instead", or that declares the
// tool deprecated. The description of a tool about deprecated things ("Checks whether packages are deprecated") has no
// such sentence.
var deprecation = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[.!?:\n(\[])[^\pL\pN]*deprecated(?:$|\s*[:.,;!)\]*]|\s+[-–—]|\s+(?:use|please|in favou?r|since|as of)\b)` +
		`|\bthis (?:tool|function|method|endpoint|command|action|api) (?:is|has been) (?:now )?deprecated\b`)
})

// IsDeprecated reports whether the definition declares the tool deprecated: in a sentence
// of its description, or by a member of _meta with that name, which may have a prefix.
func (d Definition) IsDeprecated() bool {
	if strings.Contains(d.Description, "eprecated") || strings.Contains(d.Description, "EPRECATED") {
		if deprecation().MatchString(d.Description) {
			return true
		}
	}
	if !bytes.Contains(d.Raw, []byte(`deprecated"`)) {
		return false
	}
	said := false
	_ = wirejson.EachMember(wirejson.Find(d.Raw, "_meta"), func(name, value []byte) error {
		if string(name) == "deprecated" || bytes.HasSuffix(name, []byte("/deprecated")) {
			text, isText := wirejson.String(value)
			yes, _ := wirejson.Bool(value)
			said = said || yes || isText && text != "" || wirejson.Kind(value) == '{'
		}
		return nil
	})
	return said
}
