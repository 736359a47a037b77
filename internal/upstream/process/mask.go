package process

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// shortestSecret is the minimum length of a masked value: shorter ones occur everywhere.
const shortestSecret = 4

// masked replaces a secret.
const masked = "[masked]"

// Masker masks the secrets of a server in text. The zero value masks nothing.
type Masker struct{ replacer *strings.Replacer }

// NewMasker returns a Masker for values, including their spellings in URLs and quoted
// text. Of two values with a common prefix the longer one is masked.
func NewMasker(values []string) Masker {
	var all []string
	for _, v := range values {
		if len(v) >= shortestSecret {
			quoted := strconv.Quote(v)
			all = append(all, v, url.QueryEscape(v), url.PathEscape(v), quoted[1:len(quoted)-1])
		}
	}
	if all == nil {
		return Masker{}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, v := range slices.Compact(all) {
		pairs = append(pairs, v, masked)
	}
	return Masker{strings.NewReplacer(pairs...)}
}

// MaskText returns s masked.
func (m Masker) MaskText(s string) string {
	if m.replacer == nil {
		return s
	}
	return m.replacer.Replace(s)
}

// MaskError returns err with its text masked; errors.Is and errors.As still work.
func (m Masker) MaskError(err error) error {
	if m.replacer == nil || err == nil {
		return err
	}
	text := err.Error()
	if safe := m.MaskText(text); safe != text {
		return &maskedTextError{safe, err}
	}
	return err
}

// maskedTextError is an error whose original text contains a secret.
type maskedTextError struct {
	text string
	err  error
}

func (e *maskedTextError) Error() string { return e.text }

func (e *maskedTextError) Unwrap() error { return e.err }
