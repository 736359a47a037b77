package ops

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/config"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream/secret"
)

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

// ReplaceCredentials replaces the secrets that FindCredentials returned. instead returns the replacement for the secret
// with index i.
func ReplaceCredentials(l config.Launch, all []Credential, instead func(i int) string) config.Launch {
	l.Args, l.Env, l.Headers = slices.Clone(l.Args), maps.Clone(l.Env), maps.Clone(l.Headers)
	for i, c := range slices.Backward(all) { // from the end, so that offsets stay valid
		put := func(s string) string { return s[:c.From] + instead(i) + s[c.To:] }
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

// launchSecret is a plain-text secret in a launch.
type launchSecret struct {
	Credential
	name string // name in the keyring
}

// findLaunchSecrets returns the plain-text secrets of a launch.
func findLaunchSecrets(server string, l config.Launch) (all []launchSecret) {
	for _, c := range FindCredentials(server, l) {
		all = append(all, launchSecret{Credential: c})
	}
	return all
}

// replaceLaunchSecrets returns a launch with its secrets replaced.
func replaceLaunchSecrets(l config.Launch, all []launchSecret, instead func(launchSecret) string) config.Launch {
	found := make([]Credential, len(all))
	for i, c := range all {
		found[i] = c.Credential
	}
	return ReplaceCredentials(l, found, func(i int) string { return instead(all[i]) })
}

// hasSecretInCommand reports whether a masked text is in the command or its arguments. Such a text could be code to
// execute instead of a secret.
func hasSecretInCommand(all []launchSecret) bool {
	return slices.ContainsFunc(all, func(c launchSecret) bool { return c.Place == "command" || strings.HasPrefix(c.Place, "args.") })
}

func maskPlaceholder(launchSecret) string { return "[masked]" }

func keyringReference(c launchSecret) string { return "${keyring:" + c.name + "}" }
