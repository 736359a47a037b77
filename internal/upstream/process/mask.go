package process

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// shortestSecret is the length from which a value is masked: shorter ones are
// part of too much else.
const shortestSecret = 4

// masked stands for a secret.
const masked = "[masked]"

// Masker takes the secrets of a server out of what we say. The zero value
// masks nothing.
type Masker struct{ replacer *strings.Replacer }

// NewMasker returns what masks values, also in the spellings that URLs and quoted texts in
// errors have for them. Of two values that begin alike the longer one is
// masked.
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

// Text returns s masked.
func (m Masker) Text(s string) string {
	if m.replacer == nil {
		return s
	}
	return m.replacer.Replace(s)
}

// Err returns err with its text masked; errors.Is and errors.As see through it.
func (m Masker) Err(err error) error {
	if m.replacer == nil || err == nil {
		return err
	}
	text := err.Error()
	if safe := m.Text(text); safe != text {
		return &maskedError{safe, err}
	}
	return err
}

// maskedError is an error whose own text holds a secret.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

func (e *maskedError) Unwrap() error { return e.err }
