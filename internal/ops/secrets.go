package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream/secret"
)

// SecretView describes a secret without its value.
type SecretView struct {
	Name   string     `json:"name"`
	State  string     `json:"state" enum:"set,missing,locked" doc:"The state. set: it has a value. missing: it has no value, but a server needs it or it was set before. locked: its keyring is unavailable."`
	Kept   string     `json:"kept,omitempty" enum:"keyring,file" doc:"The storage: the keyring of the system, or the encrypted file in the data directory."`
	UsedBy []string   `json:"used_by" doc:"The servers whose configuration refers to the secret."`
	SetAt  *time.Time `json:"set_at,omitempty" doc:"The time at which MCPProxy last set the secret. Absent if it never did."`
}

// SecretViews lists all secrets that are stored or needed.
type SecretViews struct {
	Secrets []SecretView `json:"secrets"`
}

// SecretRef identifies a secret.
type SecretRef struct {
	Name string `path:"name" doc:"The name of the secret: letters, digits, underscores, dots and dashes."`
}

// SetSecretRequest is a request to store a secret.
type SetSecretRequest struct {
	Name  string `path:"name" doc:"The name of the secret: letters, digits, underscores, dots and dashes."`
	Value string `json:"value" required:"true" doc:"The value, at most 65,536 bytes. No response contains it."`
}

// secretsTimeout limits how long a list waits for the keyring.
const secretsTimeout = 10 * time.Second

// SecretManager implements the operations on secrets, with or without a daemon.
type SecretManager struct {
	Store *secret.Store
	// Servers returns the configured servers.
	Servers func() []config.Server
}

// List returns the stored secrets and the secrets that servers need.
func (s SecretManager) List(ctx context.Context) (SecretViews, error) {
	ctx, cancel := context.WithTimeout(ctx, secretsTimeout)
	defer cancel()
	index, err := s.Store.ListIndex()
	if err != nil {
		return SecretViews{}, toSecretProblem(err)
	}
	names := secret.SortedNames(index)
	for _, server := range s.Servers() {
		names = append(names, server.SecretNames()...)
	}
	slices.Sort(names)
	all := SecretViews{[]SecretView{}}
	for _, name := range slices.Compact(names) {
		info, there := index[name]
		v, err := s.secretView(ctx, name, info, there)
		if err != nil {
			return SecretViews{}, toSecretProblem(err)
		}
		all.Secrets = append(all.Secrets, v)
	}
	return all, nil
}

// secretView returns the view of a secret. It checks whether the secret has a value.
func (s SecretManager) secretView(ctx context.Context, name string, info secret.SecretInfo, there bool) (SecretView, error) {
	v := SecretView{Name: name, State: "set", UsedBy: s.serversUsing(name)}
	if there {
		v.Kept, v.SetAt = string(info.Place), &info.SetAt
	}
	switch _, err := s.Store.Get(ctx, name); {
	case errors.Is(err, secret.ErrMissing):
		v.State, v.Kept = "missing", ""
	case errors.Is(err, secret.ErrLocked):
		v.State = "locked"
	case err != nil:
		return v, err
	}
	return v, nil
}

// serversUsing returns the servers that need a secret.
func (s SecretManager) serversUsing(name string) []string {
	used := []string{}
	for _, server := range s.Servers() {
		if slices.Contains(server.SecretNames(), name) {
			used = append(used, server.Name)
		}
	}
	return used
}

// Set stores a secret.
func (s SecretManager) Set(ctx context.Context, in SetSecretRequest) (SecretView, error) {
	if err := ValidateSecret(in.Name, in.Value); err != nil {
		return SecretView{}, err
	}
	info, err := s.Store.Set(ctx, in.Name, in.Value)
	if err != nil {
		return SecretView{}, toSecretProblem(err)
	}
	return SecretView{Name: in.Name, State: "set", Kept: string(info.Place), UsedBy: s.serversUsing(in.Name), SetAt: &info.SetAt}, nil
}

// Delete deletes a secret. Servers that need the secret can no longer start.
func (s SecretManager) Delete(ctx context.Context, in SecretRef) (SecretView, error) {
	if err := checkSecretName(in.Name); err != nil {
		return SecretView{}, err
	}
	if err := s.Store.Delete(ctx, in.Name); err != nil {
		return SecretView{}, toSecretProblem(err)
	}
	return SecretView{Name: in.Name, State: "missing", UsedBy: s.serversUsing(in.Name)}, nil
}

// ValidateSecret validates a name and a value. Its errors contain neither, because the user may have swapped them.
func ValidateSecret(name, value string) error {
	if err := checkSecretName(name); err != nil {
		return err
	}
	if err := secret.CheckValue(value); err != nil {
		return problem.Newf(problem.InvalidParameter, "The secret cannot be stored: %v.", err).With("parameter", "value")
	}
	return nil
}

func checkSecretName(name string) error {
	if err := secret.CheckName(name); err != nil {
		return problem.Newf(problem.InvalidName, "Invalid name for a secret: %v.", err).
			WithHint("Choose a name such as GITHUB_TOKEN.")
	}
	return nil
}

// toSecretProblem converts an error of the secret store to a problem.
func toSecretProblem(err error) error {
	switch {
	case errors.Is(err, secret.ErrMissing):
		return problem.New(problem.NotFound, "There is no secret with this name.", "See `mcpproxy secrets list`.").Because(err)
	case errors.Is(err, secret.ErrLocked):
		return problem.New(problem.Conflict, "The secret is in the keyring of the system, which is not available to this process.",
			"Unlock it, and run MCPProxy in the session of the desktop.").Because(err)
	}
	return problem.Newf(problem.Internal, "The secrets cannot be used: %v.", err).
		WithHint("Check the files secrets.* in the data directory.").Because(err)
}

// SecretOperations implements the daemon's operations on secrets.
type SecretOperations struct {
	secrets SecretManager
	gateway *Gateway
	changed func()
}

// NewSecretOperations returns a SecretOperations. changed is called after a secret may have changed.
func NewSecretOperations(s SecretManager, g *Gateway, changed func()) *SecretOperations {
	return &SecretOperations{s, g, changed}
}

// ListSecrets returns the stored secrets and the secrets that servers need.
func (s *SecretOperations) ListSecrets(ctx context.Context, _ Caller, _ Nothing) (SecretViews, error) {
	return s.secrets.List(ctx)
}

// SetSecret stores a secret and restarts the servers that need it. The record contains only the name.
func (s *SecretOperations) SetSecret(ctx context.Context, c Caller, in SetSecretRequest) (v SecretView, err error) {
	if err := ValidateSecret(in.Name, in.Value); err != nil {
		return v, err
	}
	err = s.gateway.runConfigChange(c, "set_secret", in.Name, func() error {
		v, err = s.secrets.Set(ctx, in)
		return err
	})
	s.changed()
	return v, err
}

// DeleteSecret deletes a secret. The servers that need it stop.
func (s *SecretOperations) DeleteSecret(ctx context.Context, c Caller, in SecretRef) (v SecretView, err error) {
	if err := checkSecretName(in.Name); err != nil {
		return v, err
	}
	err = s.gateway.runConfigChange(c, "delete_secret", in.Name, func() error {
		v, err = s.secrets.Delete(ctx, in)
		return err
	})
	s.changed()
	return v, err
}

// Credential is a secret found in a launch.
type Credential struct {
	Place    string // env.NAME, headers.NAME, args.INDEX, command or url
	Name     string // suggested name for a variable or a stored secret
	Kind     string // such as github-token; "secret" if unknown
	From, To int    // byte range in the text at Place
	Value    string
}

// launchText is a string of a launch and its masked form.
type launchText struct {
	place, wish   string
	value, masked string
}

// textsToSearchForSecrets returns the strings of a launch that may contain secrets.
func textsToSearchForSecrets(server string, l config.Launch) (all []launchText) {
	named := func(place string, values map[string]string, wish func(name string) string) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			t := launchText{place: place + "." + name, wish: wish(name), value: values[name]}
			t.masked = maskNamedValue(name, t.value)
			all = append(all, t)
		}
	}
	named("env", l.Env, func(name string) string {
		if secret.CheckName(name) == nil {
			return name
		}
		return ToSecretName(name)
	})
	named("headers", l.Headers, func(name string) string {
		if strings.EqualFold(name, "Authorization") {
			name = "TOKEN"
		}
		return ToSecretName(server + "_" + name)
	})
	masked := redact.Args(l.Args)
	for i := range l.Args {
		all = append(all, launchText{fmt.Sprintf("args.%d", i), ToSecretName(server + "_" + argumentName(l.Args, i)), l.Args[i], masked[i]})
	}
	all = append(all, launchText{"command", ToSecretName(server + "_TOKEN"), l.Command, redact.Text(l.Command)})
	return append(all, launchText{"url", ToSecretName(server + "_URL_TOKEN"), l.URL, redact.URL(l.URL)})
}

// argumentName returns the name of an argument, which is the flag in or before the argument.
func argumentName(args []string, i int) string {
	name, _, assigned := strings.Cut(args[i], "=")
	switch {
	case assigned:
		return strings.TrimLeft(name, "-")
	case i > 0 && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "="):
		return strings.TrimLeft(args[i-1], "-")
	}
	return "TOKEN"
}

// maskNamedValue masks the value of a variable or header, depending on its name and value.
func maskNamedValue(name, value string) string {
	raw, err := json.Marshal(map[string]string{name: value})
	var shown map[string]string
	if err != nil || json.Unmarshal(redact.JSON(raw), &shown) != nil {
		return "[masked]"
	}
	if shown[name] == value && redact.IsCredentialName(name) && !isOnOffOrEmptyValue(value) && !isPath(value) {
		return "[masked secret 00000000]"
	}
	return shown[name]
}

// isOnOffOrEmptyValue reports whether a value is empty or a switch, such as on or off, and therefore not a secret.
func isOnOffOrEmptyValue(value string) bool {
	return slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "none", "null", "0", "1"}, strings.ToLower(value))
}

func isPath(value string) bool {
	return slices.ContainsFunc([]string{"/", "~/", "./", "../", `C:\`}, func(start string) bool { return strings.HasPrefix(value, start) })
}

// maskKind matches a mask of package redact and captures the kind of the secret.
var maskKind = regexp.MustCompile(`\[masked ([a-z0-9-]+) [0-9a-f]{8}\]`)

// FindCredentials returns the plain-text secrets in a server's launch, ordered by place and offset. References are not
// included.
func FindCredentials(server string, l config.Launch) (all []Credential) {
	for _, t := range textsToSearchForSecrets(server, l) {
		kind := "secret"
		if m := maskKind.FindStringSubmatch(t.masked); m != nil {
			kind = m[1]
		}
		for _, part := range redact.MaskedRanges(t.value, t.masked) {
			if part[0] > 0 && t.value[part[0]-1] == '$' { // "$${" is an escape, not a reference
				part[0]--
			}
			value := t.value[part[0]:part[1]]
			if !isOnOffOrEmptyValue(value) && !strings.Contains(value, "${") {
				all = append(all, Credential{t.place, t.wish, kind, part[0], part[1], value})
			}
		}
	}
	return all
}

// ReplaceCredentials replaces the secrets that FindCredentials returned. instead returns the replacement of a secret.
func ReplaceCredentials(l config.Launch, all []Credential, instead func(Credential) string) config.Launch {
	l.Args, l.Env, l.Headers = slices.Clone(l.Args), maps.Clone(l.Env), maps.Clone(l.Headers)
	for _, c := range slices.Backward(all) { // from the end, so that offsets stay valid
		put := func(s string) string { return s[:c.From] + instead(c) + s[c.To:] }
		kind, name, _ := strings.Cut(c.Place, ".")
		switch kind {
		case "env":
			l.Env[name] = put(l.Env[name])
		case "headers":
			l.Headers[name] = put(l.Headers[name])
		case "args":
			var at int
			_, _ = fmt.Sscan(name, &at) // the place contains a valid index
			l.Args[at] = put(l.Args[at])
		case "command":
			l.Command = put(l.Command)
		case "url":
			l.URL = put(l.URL)
		}
	}
	return l
}

// LaunchTextAt returns the text at a place in a launch.
func LaunchTextAt(l config.Launch, place string) string {
	kind, name, _ := strings.Cut(place, ".")
	switch kind {
	case "env":
		return l.Env[name]
	case "headers":
		return l.Headers[name]
	case "args":
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(l.Args) {
			return l.Args[i]
		}
		return ""
	case "command":
		return l.Command
	}
	return l.URL
}

// ToSecretName converts a text to a valid name for both a variable and a stored secret.
func ToSecretName(s string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return strings.ToUpper(name[:min(len(name), secret.MaxName-8)])
}

// EntryReferences lists the variables and secrets in a server's entry in the configuration file.
type EntryReferences struct {
	Server    string
	Variables []string  // environment variables to which it refers
	Clear     []InClear // plain-text secrets
}

var envReference = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

// FindEntryVariablesAndSecrets examines each server in a configuration file. It returns the environment variables to
// which the server refers and the places of its plain-text secrets. It returns nil if the file cannot be parsed.
func FindEntryVariablesAndSecrets(text []byte) (all []EntryReferences) {
	tree, err := clients.ParseText(text, textedit.JSON)
	if err != nil {
		return nil
	}
	at := tree.Get("mcpServers")
	clear := map[string][]InClear{}
	if file, err := at.ReadServers("", ""); err == nil {
		for _, s := range file.Servers {
			for _, c := range FindCredentials(s.Name, s.Entry.Launch) {
				clear[s.OriginalName] = append(clear[s.OriginalName], InClear{c.Place, c.Name})
			}
		}
	}
	for name, entry := range at.Members() {
		all = append(all, EntryReferences{name, referencedVariables(entry), clear[name]})
	}
	return all
}

// referencedVariables returns the environment variables to which the strings in a tree refer.
func referencedVariables(t clients.ParsedValue) (all []string) {
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	for _, m := range envReference.FindAllStringSubmatch(t.Text(), -1) {
		add(m[1])
	}
	for _, item := range t.Items() {
		add(referencedVariables(item)...)
	}
	for _, member := range t.Members() {
		add(referencedVariables(member)...)
	}
	return all
}

// hasSecretInCommand reports whether a masked text is in the command or its arguments. Such a text could be code to
// execute instead of a secret.
func hasSecretInCommand(all []Credential) bool {
	return slices.ContainsFunc(all, func(c Credential) bool { return c.Place == "command" || strings.HasPrefix(c.Place, "args.") })
}
