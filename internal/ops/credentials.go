package ops

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/config"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream/secret"
)

// Credential is a part of a launch that looks like a secret.
type Credential struct {
	Place    string // env.NAME, headers.NAME, args.INDEX, command or url
	Wish     string // the name of a variable, or secret, that it would best have
	Kind     string // what it looks like, such as github-token; secret where that is not known
	From, To int    // of the text at the place
	Value    string
}

// credentialText is a string of a launch, with what package redact makes of it.
type credentialText struct {
	place, wish   string
	value, masked string
}

// texts are the strings of a launch in which secrets are looked for.
func texts(server string, l config.Launch) (all []credentialText) {
	named := func(place string, values map[string]string, wish func(name string) string) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			t := credentialText{place: place + "." + name, wish: wish(name), value: values[name]}
			t.masked = maskedAs(name, t.value)
			all = append(all, t)
		}
	}
	named("env", l.Env, func(name string) string {
		if secret.CheckName(name) == nil {
			return name
		}
		return CredentialName(name)
	})
	named("headers", l.Headers, func(name string) string {
		if strings.EqualFold(name, "Authorization") {
			name = "TOKEN"
		}
		return CredentialName(server + "_" + name)
	})
	masked := redact.Args(l.Args)
	for i := range l.Args {
		all = append(all, credentialText{fmt.Sprintf("args.%d", i), CredentialName(server + "_" + flagOf(l.Args, i)), l.Args[i], masked[i]})
	}
	all = append(all, credentialText{"command", CredentialName(server + "_TOKEN"), l.Command, redact.Text(l.Command)})
	return append(all, credentialText{"url", CredentialName(server + "_URL_TOKEN"), l.URL, redact.URL(l.URL)})
}

// flagOf is what an argument is called: by the flag in it or before it.
func flagOf(args []string, i int) string {
	name, _, assigned := strings.Cut(args[i], "=")
	switch {
	case assigned:
		return strings.TrimLeft(name, "-")
	case i > 0 && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "="):
		return strings.TrimLeft(args[i-1], "-")
	}
	return "TOKEN"
}

// maskedAs is the value of a variable or header with its secrets masked.
func maskedAs(name, value string) string {
	raw, err := json.Marshal(map[string]string{name: value})
	var shown map[string]string
	if err != nil || json.Unmarshal(redact.JSON(raw), &shown) != nil {
		return "[masked]"
	}
	if shown[name] == value && redact.Tells(name) && !aSwitch(value) && !aPath(value) {
		return "[masked secret 00000000]"
	}
	return shown[name]
}

// aSwitch reports whether a value is too little to be a secret.
func aSwitch(value string) bool {
	return slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "none", "null", "0", "1"}, strings.ToLower(value))
}

func aPath(value string) bool {
	return slices.ContainsFunc([]string{"/", "~/", "./", "../", `C:\`}, func(start string) bool { return strings.HasPrefix(value, start) })
}

// maskKind finds the kind in a mask of package redact.
var maskKind = regexp.MustCompile(`\[masked ([a-z0-9-]+) [0-9a-f]{8}\]`)

// CredentialsIn finds what looks like a secret, and is no reference to one, in the launch of a
// server: in the order of places, and in a place from the left.
func CredentialsIn(server string, l config.Launch) (all []Credential) {
	for _, t := range texts(server, l) {
		kind := "secret"
		if m := maskKind.FindStringSubmatch(t.masked); m != nil {
			kind = m[1]
		}
		for _, part := range redact.Hidden(t.value, t.masked) {
			if part[0] > 0 && t.value[part[0]-1] == '$' { // "$${" is no reference
				part[0]--
			}
			value := t.value[part[0]:part[1]]
			if !aSwitch(value) && !strings.Contains(value, "${") {
				all = append(all, Credential{t.place, t.wish, kind, part[0], part[1], value})
			}
		}
	}
	return all
}

// ReplaceCredentials returns a launch with something else in the place of its secrets, which are
// those that In has found in it: the text for each, in their order.
func ReplaceCredentials(l config.Launch, all []Credential, instead func(i int) string) config.Launch {
	l.Args, l.Env, l.Headers = slices.Clone(l.Args), maps.Clone(l.Env), maps.Clone(l.Headers)
	for i, c := range slices.Backward(all) { // so that the places before it stay
		put := func(s string) string { return s[:c.From] + instead(i) + s[c.To:] }
		kind, name, _ := strings.Cut(c.Place, ".")
		switch kind {
		case "env":
			l.Env[name] = put(l.Env[name])
		case "headers":
			l.Headers[name] = put(l.Headers[name])
		case "args":
			var at int
			_, _ = fmt.Sscan(name, &at) // which was written from an index
			l.Args[at] = put(l.Args[at])
		case "command":
			l.Command = put(l.Command)
		case "url":
			l.URL = put(l.URL)
		}
	}
	return l
}

// CredentialAt returns the text at a place of a launch.
func CredentialAt(l config.Launch, place string) string {
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

// CredentialName makes a name that a variable, and a secret, can have.
func CredentialName(s string) string {
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
