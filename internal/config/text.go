package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

// InForce returns the text that is in force.
func (l *Live) InForce() InForce { return *l.inForce.Load() }

// Read returns the bytes of the file as it is now, nil when there is none. It may
// not be in force yet, or be refused.
func (l *Live) Read() ([]byte, error) {
	r := l.read()
	return r.data, r.err
}

// KeysBetween returns the keys that differ between two texts, none where one of
// them is no file that is sound.
func (l *Live) KeysBetween(a, b []byte) []string {
	from, errA := l.parse(a)
	to, errB := l.parse(b)
	if errA != nil || errB != nil {
		return []string{}
	}
	return keysOf(differences(from, to))
}

// Outranked reports whether a flag or a variable counts in the place of a key.
func (l *Live) Outranked(key string) bool {
	return key == "listen" && l.options.Listen != "" || key == "data_dir" && l.dataDir != ""
}

// Assessment is what would come of a text.
type Assessment struct {
	Err          error // why it would be refused: a *problem.Problem; nil when it would not
	Mistakes     []Mistake
	Warnings     []string
	Differences  []Difference // from what is in force
	Widens       []Difference // what of them a person has to permit
	NeedsRestart []string     // the keys that would wait for a restart
}

// Assess returns what would come of a text in the place of the file, and the configuration
// that it would be, nil when it would be refused: it is parsed and checked, the
// components prepare for it, and nothing is changed.
func (l *Live) Assess(text []byte) (*Config, Assessment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := l.acceptable(text)
	if err == nil {
		_, err = prepare(l.components, next)
	}
	if err != nil {
		a := Assessment{Err: err}
		a.Mistakes, _ = problem.From(err).Detail("problems").([]Mistake)
		return nil, a
	}
	_, found := l.base.hold(next)
	return next, Assessment{Warnings: slices.Concat(l.leadingBack(next), next.warnings), Differences: differences(l.Current(), next), Widens: found,
		NeedsRestart: changed(l.started, next, func(k key) bool { return k.restart })}
}

// acceptable parses a text as it is written by MCPProxy: no server that it adds or
// launches otherwise leads back to it.
func (l *Live) acceptable(text []byte) (*Config, error) {
	next, err := l.parse(text)
	if err != nil {
		return nil, err
	}
	var mistakes []Mistake
	for _, s := range next.Servers {
		if was := l.Current().Server(s.Name); was != nil && reflect.DeepEqual(was.Launch, s.Launch) {
			continue
		}
		if how := l.itself(next, s.Launch); how != "" {
			m := Mistake{Path: join("mcpServers", s.Name), Message: "MCPProxy cannot be a server behind itself: " + how, Hint: "take the server out"}
			m.Line, m.Column = serverAt(text, s.Name)
			mistakes = append(mistakes, m)
		}
	}
	if mistakes != nil {
		return nil, refused(filepath.Base(l.path), mistakes, 0)
	}
	return next, nil
}

// serverAt is where a server stands in a text that is sound.
func serverAt(text []byte, name string) (line, column int) {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	d, mistake := textedit.NewDocument(text)
	if mistake != nil {
		return 0, 0
	}
	servers, i := document{d}.server(name)
	if i < 0 {
		return 0, 0
	}
	return source{text}.position(servers.Items[i].Start)
}

// Refusal is the error of a file with these mistakes.
func Refusal(file string, mistakes []Mistake) *problem.Problem { return refused(file, mistakes, 0) }

// ReplaceText puts a text in the place of the file, if that is still the one whose
// ETag is match, and applies it; by is on its version. When anything is wrong with
// it, or a component refuses it, nothing changes: the error is a *problem.Problem,
// whose details have the mistakes as problems.
func (l *Live) ReplaceText(permit Permit, match string, text []byte, by string) error {
	return l.rewrite(permit, match, by, func([]byte) (*Config, *Config, []byte, error) {
		next, err := l.acceptable(text)
		return nil, next, text, err
	})
}

// SetKeys sets keys of the file by their names ("log.level"), or takes them out
// whose value is nil, as ReplaceText does: all of them or none. The file keeps its
// comments and its order.
func (l *Live) SetKeys(permit Permit, match string, values map[string]json.RawMessage, by string) error {
	return l.rewrite(permit, match, by, func(text []byte) (*Config, *Config, []byte, error) {
		before, err := l.parse(text)
		if err != nil {
			return nil, nil, nil, problem.From(err).WithHint("Correct the file first; nothing was changed.")
		}
		if text, err = WithKeys(text, values); err != nil {
			return nil, nil, nil, err
		}
		next, err := l.acceptable(text)
		if err != nil {
			return nil, nil, nil, misfit(filepath.Base(l.path), err)
		}
		return before, next, text, nil
	})
}

// WithKeys returns a valid text of the file with keys set by their names
// ("log.level"), or taken out whose value is nil. Comments and order stay.
func WithKeys(text []byte, values map[string]json.RawMessage) ([]byte, error) {
	for _, k := range new(Config).keys() { // in the order of the reference
		value, given := values[k.name]
		if !given {
			continue
		}
		var err error
		if text, err = edited(text, func(d document) ([]textedit.Splice, error) { return d.setKey(k.name, value) }); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// rewrite changes the file as a whole: change returns what the file said before, nil where
// that plays no part, and what it says then.
func (l *Live) rewrite(permit Permit, match, by string, change func(text []byte) (before, next *Config, changed []byte, err error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.read()
	switch {
	case r.err != nil:
		return r.err
	case ETag(r.data) != match:
		return isAnother(l.path, r)
	}
	before, next, text, err := change(r.data)
	if err != nil {
		return err
	}
	if err = publish(l, r, text, next, between(before, next), permit, by); errors.Is(err, errMeanwhile) {
		return isAnother(l.path, l.read())
	}
	return err
}

// isAnother is the refusal of a change of a text that is no longer the file's.
func isAnother(path string, r reading) error {
	return problem.Newf(problem.Conflict, "%s has been changed meanwhile.", path).
		WithHint("Read it again, and make the change there.").With("etag", ETag(r.data))
}

// setKey sets or takes out a key of the file.
func (d document) setKey(name string, value json.RawMessage) ([]textedit.Splice, error) {
	group, member, nested := strings.Cut(name, ".")
	top := textedit.Parts(d.Root)
	at := slices.IndexFunc(top.Items, func(it textedit.Item) bool { return it.Name == group })
	switch {
	case !nested:
		return d.put(top, at, name, value, "")
	case at < 0 && value == nil:
		return nil, nil
	case at < 0:
		object := slices.Concat([]byte(`{"`+member+`": `), value, []byte("}"))
		return d.put(top, at, group, object, "")
	}
	object := textedit.Parts(top.Items[at].Value)
	i := slices.IndexFunc(object.Items, func(it textedit.Item) bool { return it.Name == member })
	return d.put(object, i, member, value, "")
}

// CheckSetting returns the refusal of a key that SetKeys cannot set.
func CheckSetting(name string) error {
	var known []string
	for _, s := range Settings(Default(), nil) {
		if s.Key == name {
			return nil
		}
		known = append(known, s.Key)
	}
	hint := "GET /config has the keys."
	switch near := search.Meant(name, known); {
	case name == "mcpServers" || strings.HasPrefix(name, "mcpServers."):
		hint = "Servers are changed with PATCH /servers/{name}, or in the text of the file."
	case near != "":
		hint = "Did you mean " + quote(near) + "?"
	}
	return problem.Newf(problem.InvalidParameter, "%s is not a setting.", quote(name)).WithHint(hint).With("parameter", "set").With("value", name)
}
