package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/sandbox"
)

// ServerEdit is a server to be written into the file. Strings are written unchanged,
// including references. Empty values are omitted.
type ServerEdit struct {
	Launch
	Enabled     *bool  `json:"enabled,omitempty"`
	Quarantined bool   `json:"quarantined,omitempty"`
	Trust       Trust  `json:"trust,omitempty"`
	Pin         string `json:"pin,omitempty"`
	// Sandbox is nil for a server without a sandbox.
	Sandbox *sandbox.Rules `json:"sandbox,omitempty"`
}

// CheckValues returns an error for a name or value of a variable or header, or an argument, that is invalid for every
// server. It is for edits that are only proposed, because the whole file is checked when it is written. The error is
// a *problem.Problem.
func (s ServerEdit) CheckValues() error {
	bad := func(parameter, where string, err error) error {
		if err == nil {
			return nil
		}
		what, todo, _ := strings.Cut(err.Error(), "; ")
		return problem.Newf(problem.InvalidParameter, "In %s, %s: %s.", parameter, where, what).
			WithHint(strings.ToUpper(todo[:1])+todo[1:]+".").With("parameter", parameter)
	}
	launch := Server{Launch: s.Launch}
	for _, k := range launch.keys() {
		switch v := k.field.(type) {
		case *string:
			if err := bad(k.name, "the value", checkNoNUL(*v)); err != nil {
				return err
			}
		case *[]string:
			for i, text := range *v {
				if err := bad(k.name, fmt.Sprintf("number %d", i+1), checkNoNUL(text)); err != nil {
					return err
				}
			}
		case *map[string]string:
			check := checkNoNUL
			if k.check != nil {
				check = k.check
			}
			for _, name := range slices.Sorted(maps.Keys(*v)) {
				shown, _, _ := strings.Cut(name, "=") // the rest is meant as a value
				if err := cmp.Or(bad(k.name, "the name "+quoteClipped(shown), k.checkName(name)),
					bad(k.name, "the value of "+quoteClipped(shown), check((*v)[name]))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// NamedEdit is a server to add, with its name.
type NamedEdit struct {
	Name string
	ServerEdit
}

// AddServers writes servers into the file, after the existing ones, and applies it. permit confirms all changes that
// grant more access at once. Like other edits, it changes nothing if the resulting file is invalid or a component
// rejects it; the error is a *problem.Problem. The formatting, comments and order of the file are preserved.
func (l *LiveConfig) AddServers(permit ConfirmFunc, all ...NamedEdit) error {
	names, edits, err := newServerAdditions(all)
	if err != nil {
		return err
	}
	return l.editServers(permit, names, edits...)
}

// CheckNewServers returns the error that AddServers would return if the user permitted the change. It changes
// nothing.
func (l *LiveConfig) CheckNewServers(all ...NamedEdit) error {
	names, edits, err := newServerAdditions(all)
	if err != nil {
		return err
	}
	return editWithRetry(l, names, edits, func(_ fileContent, _ []byte, next *Config, changes func(key string) bool) error {
		live := next
		if limit := l.confirmed.extendedLimit(next, changes); limit != nil {
			live, _ = clampAccessExcept(limit, next, nil)
		}
		_, err := prepareComponents(l.components, live)
		return err
	})
}

func newServerAdditions(all []NamedEdit) (names []string, edits []textEdit, err error) {
	for _, s := range all {
		if err := tool.CheckServerName(s.Name); err != nil {
			return nil, nil, problem.Newf(problem.InvalidParameter, "The server's name %s cannot be used: %v", quoteClipped(s.Name), err).
				WithHint("Choose another name.").With("parameter", "name").With("value", s.Name)
		}
		encoded, err := wirejson.MarshalWithoutHTMLEscape(s.ServerEdit)
		if err != nil {
			return nil, nil, err
		}
		names = append(names, s.Name)
		edits = append(edits, func(d document) ([]textedit.Splice, error) { return d.addServerSplices(s.Name, encoded) })
	}
	return names, edits, nil
}

// RemoveServer removes a server from the file and applies it.
func (l *LiveConfig) RemoveServer(name string) error {
	return l.editServers(nil, []string{name}, func(d document) ([]textedit.Splice, error) {
		servers, i := d.findServer(name)
		if i < 0 {
			return nil, unknownServerError(name)
		}
		return d.SplicesToRemove(servers, i), nil
	})
}

// SetServer sets a key of a server in the file, or removes it when value is nil, and applies the file. field is the
// canonical key; an alias in the file is kept. For env and headers, an object sets its members and removes those that
// are null. A list for command is the program with its arguments, and also sets args.
func (l *LiveConfig) SetServer(permit ConfirmFunc, name, field string, value json.RawMessage) error {
	if value != nil && !json.Valid(value) {
		return problem.Newf(problem.InvalidParameter, "The value for %s is not JSON.", quoteClipped(field)).
			WithHint(`Write true, false, a number, a list, an object, or text in double quotes.`).With("parameter", field)
	}
	steps, err := toServerSettings(field, value)
	if err != nil {
		return err
	}
	var edits []textEdit
	for _, one := range steps {
		edits = append(edits, editOfServer(name, func(d document, server textedit.Container) ([]textedit.Splice, error) {
			return d.serverSettingSplices(server, one)
		}))
	}
	return l.editServers(permit, []string{name}, edits...)
}

// editOfServer returns an edit of the entry of a server, which must exist.
func editOfServer(name string, splices func(d document, server textedit.Container) ([]textedit.Splice, error)) textEdit {
	return func(d document) ([]textedit.Splice, error) {
		servers, i := d.findServer(name)
		if i < 0 {
			return nil, unknownServerError(name)
		}
		return splices(d, textedit.ContainerOf(servers.Items[i].Value))
	}
}

// serverSetting is a key of a server, or a member of one, with its new value. A nil value removes it.
type serverSetting struct {
	key, member string
	value       json.RawMessage
}

// maxSettings limits the settings of one change, because the file is parsed for each.
const maxSettings = 256

// toServerSettings returns the settings of a change, in order.
func toServerSettings(field string, value json.RawMessage) (out []serverSetting, err error) {
	switch kind := wirejson.Kind(value); {
	case field == "command" && kind == '[':
		var words []json.RawMessage
		if err := json.Unmarshal(value, &words); err != nil || len(words) == 0 {
			return nil, problem.New(problem.InvalidParameter, "The list for command is empty.", "Give the program and its arguments.").With("parameter", field)
		}
		out = []serverSetting{{key: "command", value: words[0]}, {key: "args"}}
		if len(words) > 1 {
			out[1].value, err = wirejson.MarshalWithoutHTMLEscape(words[1:])
		}
		return out, err
	case (field == "env" || field == "headers") && kind == '{':
		err := wirejson.EachMember(value, func(name, value []byte) error {
			if wirejson.Kind(value) == 'n' {
				value = nil
			}
			out = append(out, serverSetting{field, string(name), value})
			return nil
		})
		if len(out) > maxSettings {
			return nil, problem.Newf(problem.InvalidParameter, "The change of %s has %d members; the limit is %d.", quoteClipped(field), len(out), maxSettings).
				WithHint("Split it into several changes.").With("parameter", field)
		}
		return out, err
	}
	return []serverSetting{{key: field, value: value}}, nil
}

// serverSettingSplices returns the splices that apply one setting to a server.
func (d document) serverSettingSplices(server textedit.Container, s serverSetting) ([]textedit.Splice, error) {
	if s.member == "" {
		return d.setServerKeySplices(server, s.key, s.value)
	}
	i := server.IndexOf(s.key)
	switch {
	case i < 0 && s.value == nil:
		return nil, nil
	case i < 0:
		object, err := wirejson.MarshalWithoutHTMLEscape(map[string]json.RawMessage{s.member: s.value})
		if err != nil {
			return nil, err
		}
		return d.setServerKeySplices(server, s.key, object)
	}
	object := textedit.ContainerOf(server.Items[i].Value)
	at := slices.IndexFunc(object.Items, func(it textedit.ContainerItem) bool {
		return it.Name == s.member || s.key == "headers" && strings.EqualFold(it.Name, s.member)
	})
	return d.SplicesToSetMember(object, at, s.member, s.value)
}

func unknownServerError(name string) error {
	return problem.Newf(problem.ServerNotFound, "Server %s is not in the configuration file.", quoteClipped(name)).
		WithHint("To list the servers, run mcpproxy upstream list.")
}

// findServer finds mcpServers and the index of that server in it, -1 if there is none.
func (d document) findServer(name string) (servers textedit.Container, at int) {
	m := findMember(d.Root, "mcpServers")
	if m == nil {
		return textedit.Container{}, -1
	}
	servers = textedit.ContainerOf(m.Value)
	return servers, slices.IndexFunc(servers.Items, func(it textedit.ContainerItem) bool {
		if it.Name == "" {
			it.Name, _ = listEntryName(it.Value)
		}
		return it.Name == name
	})
}

func (d document) addServerSplices(name string, encoded []byte) ([]textedit.Splice, error) {
	if _, i := d.findServer(name); i >= 0 {
		return nil, problem.Newf(problem.Conflict, "A server with the name %s already exists.", quoteClipped(name)).
			WithHint("Choose another name, or remove that server first.")
	}
	m := findMember(d.Root, "mcpServers")
	listed := m != nil && m.Value.Value.Kind() == '['
	quoted, err := wirejson.MarshalWithoutHTMLEscape(name)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("{%s: %s}", quoted, encoded)
	if listed {
		text = fmt.Sprintf(`{"name": %s, %s`, quoted, encoded[1:])
	}
	value, err := hujson.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	if m == nil {
		return d.SplicesToInsert(textedit.ContainerOf(d.Root), func(indent string, lines bool) string {
			return d.MemberText("mcpServers", value, indent, 2, lines)
		}), nil
	}
	servers := textedit.ContainerOf(m.Value)
	return d.SplicesToInsert(servers, func(indent string, lines bool) string {
		depth := 1
		if n := len(servers.Items); n > 0 {
			if d.IsOnOneLine(servers.Items[n-1]) {
				depth = 0 // as deep as the other servers
			}
		}
		if listed {
			if !lines {
				depth = 0
			}
			return d.ValueText(value, indent, depth)
		}
		return d.MemberText(name, textedit.ContainerOf(value).Items[0].Value, indent, depth, lines)
	}), nil
}

// setServerKeySplices returns the splices that set or remove the key field of a server.
func (d document) setServerKeySplices(server textedit.Container, field string, value json.RawMessage) ([]textedit.Splice, error) {
	keys := new(Server).keys()
	at, inverse := findKey(keys, field)
	var k configKey
	if at >= 0 {
		k = keys[at]
	}
	if len(keysInGroup(keys, field)) > 0 { // an object with its own keys
		k.name = field
	}
	if k.name == "" || inverse || k.name != field || field == "name" {
		hint := "The keys are in the reference of the configuration file."
		if near := cmp.Or(k.name, search.ClosestName(field, keyNamesToSuggest(keys))); near != "" {
			hint = "Did you mean " + quoteClipped(near) + "?"
		}
		return nil, problem.Newf(problem.InvalidParameter, "%s is not a key of a server that can be set.", quoteClipped(field)).
			WithHint(hint).With("parameter", "field").With("value", field)
	}
	i := slices.IndexFunc(server.Items, func(it textedit.ContainerItem) bool {
		same, _ := findKeyOfMember(keys, hujson.ObjectMember{Value: it.Value}, it.Name)
		return it.Name == field || same >= 0 && same == at
	})
	return d.setObjectMemberSplices(server, i, field, value, k.inverse)
}

// setObjectMemberSplices returns the splices that set member i of an object, or add it as field; value nil removes
// it. A member called inverse has the opposite meaning.
func (d document) setObjectMemberSplices(object textedit.Container, i int, field string, value json.RawMessage, inverse string) ([]textedit.Splice, error) {
	if i >= 0 && value != nil && inverse != "" && object.Items[i].Name == inverse {
		v, err := hujson.Parse(value)
		if err != nil {
			return nil, err
		}
		return []textedit.Splice{d.SpliceToReplace(object.Items[i], invertBool(v))}, nil
	}
	return d.SplicesToSetMember(object, i, field, value)
}

// errFileChanged means that the file was saved during an edit.
var errFileChanged = errors.New("the file was changed since it was read")

// document is the text of a valid file. An edit leaves the rest of the text unchanged.
type document struct{ *textedit.Document }

// textEdit is one change of a file's text.
type textEdit func(document) ([]textedit.Splice, error)

// editServers changes the file and applies it. It may change only these servers.
func (l *LiveConfig) editServers(permit ConfirmFunc, servers []string, changes ...textEdit) error {
	return editWithRetry(l, servers, changes, func(r fileContent, text []byte, next *Config, changes func(key string) bool) error {
		return writeAndCommit(l, r, text, next, changes, permit, ByCommand)
	})
}

// editResultFunc receives the resulting text and the changed keys.
type editResultFunc func(r fileContent, text []byte, next *Config, changes func(key string) bool) error

// editWithRetry computes the text, and retries if the file changed since it was read.
func editWithRetry(l *LiveConfig, servers []string, changes []textEdit, then editResultFunc) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	const tries = 20
	for range tries {
		err := editOnce(l, servers, changes, then)
		if !errors.Is(err, errFileChanged) {
			return err
		}
	}
	return problem.Newf(problem.Conflict, "%s keeps being changed by another program.", l.path).
		WithHint("Try again when that program has finished.")
}

// editOnce makes one attempt. The caller holds mu, so that the watch does not apply the
// file in the meantime.
func editOnce(l *LiveConfig, servers []string, changes []textEdit, then editResultFunc) error {
	r := l.readFile()
	switch {
	case r.err != nil:
		return r.err
	case r.data == nil && l.existed:
		return problem.Newf(problem.InvalidConfig, "%s is missing; the previous configuration stays active.", l.path).
			WithHint("Restore the file first.")
	}
	before, err := l.parseText(r.data)
	if err != nil {
		return problem.From(err).WithHint("Correct the file first; nothing was changed.")
	}
	text := r.data
	for _, change := range changes {
		if text, err = editedText(text, change); err != nil {
			return err
		}
	}
	next, err := l.parseText(text)
	if err != nil {
		return newInvalidEditError(filepath.Base(l.path), err)
	}
	for _, key := range changedKeys(before, next, acceptEveryKey) {
		if !slices.ContainsFunc(servers, func(name string) bool { return key == joinPath("mcpServers", name) }) {
			return problem.Newf(problem.Internal, "The edit would change %s, too.", key).
				WithHint("Edit the file manually: " + l.path)
		}
	}
	for _, name := range servers {
		if s, was := next.Server(name), before.Server(name); s != nil && (was == nil || !reflect.DeepEqual(s.Launch, was.Launch)) {
			if err := l.CheckNotSelfReference(s.Launch); err != nil {
				return err
			}
		}
	}
	return then(r, text, next, newChangedKeyFunc(before, next))
}

// writeAndCommit prepares the components for next, gets the user's permission for the changed
// keys that grant more access, writes the text and commits. Other withheld changes of
// next stay withheld.
func writeAndCommit(l *LiveConfig, r fileContent, text []byte, next *Config, changes func(key string) bool, permit ConfirmFunc, by string) error {
	limit := l.confirmed.extendedLimit(next, changes)
	live, found := next, []Difference(nil)
	if limit != nil {
		live, found = clampAccessExcept(limit, next, nil)
	}
	commits, err := prepareComponents(l.components, live)
	if err != nil {
		return err
	}
	if !l.readFile().equals(r) {
		return errFileChanged
	}
	if err := l.confirmed.confirmLimitIfWidened(limit, permit); err != nil {
		return err
	}
	if !bytes.Equal(text, r.data) {
		// As late as possible, so that a user's save is not lost.
		if !l.readFile().equals(r) {
			return errFileChanged
		}
		if err := replaceFile(l.path, text); err != nil {
			return problem.Newf(problem.InvalidConfig, "%s cannot be written: %v", l.path, err).
				WithHint("Check the permissions of the file and its directory, and the space on the disk.").Because(err)
		}
	}
	l.last, l.existed, l.wanted = fileContent{data: text}, true, next
	l.unconfirmed.Store(l.confirmed.newUnconfirmed(found, next.Presence))
	l.commitAppliedText(live, commits, by)
	return nil
}

// editedText returns the new text of a file; nil means that there is no file.
func editedText(data []byte, change textEdit) ([]byte, error) {
	return textedit.EditJSON(data, func(d *textedit.Document) ([]textedit.Splice, error) { return change(document{d}) })
}

// newInvalidEditError returns the error for an edit that would make the file invalid. It contains no lines and
// columns, because the resulting text is not stored.
func newInvalidEditError(file string, err error) error {
	p := problem.From(err)
	mistakes, ok := p.Detail("problems").([]Mistake)
	if !ok {
		return p
	}
	mistakes = slices.Clone(mistakes)
	for i := range mistakes {
		mistakes[i].Line, mistakes[i].Column = 0, 0
	}
	return newMistakesError(file, mistakes, 0).WithHint("Nothing was changed.")
}

// replaceFile replaces the file atomically. A symbolic link stays a link.
func replaceFile(path string, text []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	} else if _, linked := os.Readlink(path); linked == nil {
		return errors.New("it is a link to a file that does not exist")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return ondisk.ReplaceFile(path, text)
}
