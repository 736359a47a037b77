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

// AppliedText returns the applied text.
func (l *LiveConfig) AppliedText() AppliedText { return *l.appliedText.Load() }

// ReadFile returns the current bytes of the file, nil if there is no file. They may be invalid, or not applied yet.
func (l *LiveConfig) ReadFile() ([]byte, error) {
	r := l.readFile()
	return r.data, r.err
}

// ChangedKeys returns the keys that differ between two texts; nil if one of them is invalid.
func (l *LiveConfig) ChangedKeys(a, b []byte) []string {
	from, errA := l.parseText(a)
	to, errB := l.parseText(b)
	if errA != nil || errB != nil {
		return []string{}
	}
	return differenceKeys(findDifferences(from, to))
}

// IsOverridden reports whether a flag or variable overrides a key.
func (l *LiveConfig) IsOverridden(key string) bool {
	return key == "listen" && l.options.Listen != "" || key == "data_dir" && l.dataDir != ""
}

// TextCheck is the result of checking a text.
type TextCheck struct {
	Err          error // reason for a rejection: a *problem.Problem, or nil
	Mistakes     []Mistake
	Warnings     []string
	Differences  []Difference // from the current configuration
	Grants       []Difference // the differences that need confirmation
	NeedsRestart []string     // keys that would need a restart
}

// CheckText returns the effects of replacing the file with text, and the resulting configuration; nil if text would
// be rejected. It parses and checks the text, and makes the components prepare for it. Nothing changes.
func (l *LiveConfig) CheckText(text []byte) (*Config, TextCheck) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := l.parseRejectingSelfReferences(text)
	if err == nil {
		_, err = prepareComponents(l.components, next)
	}
	if err != nil {
		a := TextCheck{Err: err}
		a.Mistakes, _ = problem.From(err).Detail("problems").([]Mistake)
		return nil, a
	}
	_, found := l.confirmed.withholdAccessIncreases(next)
	return next, TextCheck{Warnings: slices.Concat(l.selfReferenceWarnings(next), next.warnings), Differences: findDifferences(l.Current(), next), Grants: found,
		NeedsRestart: changedKeys(l.started, next, func(k configKey) bool { return k.restart })}
}

// parseRejectingSelfReferences parses the new text of the file. It rejects new or changed servers that are this
// MCPProxy itself.
func (l *LiveConfig) parseRejectingSelfReferences(text []byte) (*Config, error) {
	next, err := l.parseText(text)
	if err != nil {
		return nil, err
	}
	var mistakes []Mistake
	for _, s := range next.Servers {
		if was := l.Current().Server(s.Name); was != nil && reflect.DeepEqual(was.Launch, s.Launch) {
			continue
		}
		if how := l.selfReferenceReason(next, s.Launch); how != "" {
			m := Mistake{Path: joinPath("mcpServers", s.Name), Message: "MCPProxy cannot be its own server: " + how, Hint: "remove the server"}
			m.Line, m.Column = serverPosition(text, s.Name)
			mistakes = append(mistakes, m)
		}
	}
	if mistakes != nil {
		return nil, newMistakesError(filepath.Base(l.path), mistakes, 0)
	}
	return next, nil
}

// serverPosition returns the position of a server in a valid text.
func serverPosition(text []byte, name string) (line, column int) {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	d, mistake := textedit.NewDocument(text)
	if mistake != nil {
		return 0, 0
	}
	servers, i := document{d}.findServer(name)
	if i < 0 {
		return 0, 0
	}
	return sourceText{text}.position(servers.Items[i].Start)
}

// NewMistakesError returns the error of a file with these mistakes.
func NewMistakesError(file string, mistakes []Mistake) *problem.Problem {
	return newMistakesError(file, mistakes, 0)
}

// ReplaceText replaces the file if its ETag is still match, and applies it. by is the author of the version. If the
// text is invalid, or a component rejects it, nothing changes, and the error is a *problem.Problem with the mistakes
// as details.
func (l *LiveConfig) ReplaceText(permit ConfirmFunc, match string, text []byte, by string) error {
	return l.rewriteFile(permit, match, by, func([]byte) (*Config, *Config, []byte, error) {
		next, err := l.parseRejectingSelfReferences(text)
		return nil, next, text, err
	})
}

// SetConfigKeys sets keys of the file by name ("log.level"), and removes those whose value is nil. Like ReplaceText,
// it applies all changes or none. Comments and order are preserved.
func (l *LiveConfig) SetConfigKeys(permit ConfirmFunc, match string, values map[string]json.RawMessage, by string) error {
	return l.rewriteFile(permit, match, by, func(text []byte) (*Config, *Config, []byte, error) {
		before, err := l.parseText(text)
		if err != nil {
			return nil, nil, nil, problem.From(err).WithHint("Correct the file first; nothing was changed.")
		}
		if text, err = SetConfigKeysInText(text, values); err != nil {
			return nil, nil, nil, err
		}
		next, err := l.parseRejectingSelfReferences(text)
		if err != nil {
			return nil, nil, nil, newInvalidEditError(filepath.Base(l.path), err)
		}
		return before, next, text, nil
	})
}

// SetConfigKeysInText returns a valid file text with keys set by name ("log.level"), or removed if their value is
// nil. Comments and order are preserved.
func SetConfigKeysInText(text []byte, values map[string]json.RawMessage) ([]byte, error) {
	for _, k := range new(Config).keys() { // in reference order
		value, given := values[k.name]
		if !given {
			continue
		}
		var err error
		if text, err = editedText(text, func(d document) ([]textedit.Splice, error) { return d.setConfigKeySplices(k.name, value) }); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// rewriteFile changes the file as a whole. change returns the previous configuration, the new one and the new text.
// If the previous one is nil, every key counts as changed.
func (l *LiveConfig) rewriteFile(permit ConfirmFunc, match, by string, change func(text []byte) (before, next *Config, changed []byte, err error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.readFile()
	switch {
	case r.err != nil:
		return r.err
	case ETag(r.data) != match:
		return newFileChangedError(l.path, r)
	}
	before, next, text, err := change(r.data)
	if err != nil {
		return err
	}
	if err = writeAndCommit(l, r, text, next, newChangedKeyFunc(before, next), permit, by); errors.Is(err, errFileChanged) {
		return newFileChangedError(l.path, l.readFile())
	}
	return err
}

// newFileChangedError returns the error that rejects a change because the file has changed.
func newFileChangedError(path string, r fileContent) error {
	return problem.Newf(problem.Conflict, "%s was changed since it was read.", path).
		WithHint("Read it again, and repeat the change.").With("etag", ETag(r.data))
}

// setConfigKeySplices returns the splices that set or remove a key of the file.
func (d document) setConfigKeySplices(name string, value json.RawMessage) ([]textedit.Splice, error) {
	group, member, nested := strings.Cut(name, ".")
	top := textedit.ContainerOf(d.Root)
	at := top.IndexOf(group)
	switch {
	case !nested:
		return d.setObjectMemberSplices(top, at, name, value, "")
	case at < 0 && value == nil:
		return nil, nil
	case at < 0:
		object := slices.Concat([]byte(`{"`+member+`": `), value, []byte("}"))
		return d.setObjectMemberSplices(top, at, group, object, "")
	}
	object := textedit.ContainerOf(top.Items[at].Value)
	return d.setObjectMemberSplices(object, object.IndexOf(member), member, value, "")
}

// CheckSettableKey returns an error for a key that SetConfigKeys cannot set.
func CheckSettableKey(name string) error {
	var known []string
	for _, s := range ListSettings(DefaultConfig(), nil) {
		if s.Key == name {
			return nil
		}
		known = append(known, s.Key)
	}
	hint := "GET /config has the keys."
	switch near := search.ClosestName(name, known); {
	case name == "mcpServers" || strings.HasPrefix(name, "mcpServers."):
		hint = "Servers are changed with PATCH /servers/{name}, or in the text of the file."
	case near != "":
		hint = "Did you mean " + quoteClipped(near) + "?"
	}
	return problem.Newf(problem.InvalidParameter, "%s is not a setting.", quoteClipped(name)).WithHint(hint).With("parameter", "set").With("value", name)
}
