package registry

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Option is one way to start or reach the server of an entry, without the values that a user gives.
type Option struct {
	ID      string   `json:"id" doc:"npm, pypi, oci or remote; with a number from the second of its kind."`
	Command []string `json:"command,omitempty" doc:"The program with its arguments."`
	URL     string   `json:"url,omitempty" doc:"The address of a remote server, with its variables in braces."`
	Inputs  []Input  `json:"inputs"`
	Problem string   `json:"problem,omitempty" doc:"Why MCPProxy cannot use the option."`
}

// Input is a value that an option asks for.
type Input struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind" enum:"env,header,argument,variable"`
	Description string   `json:"description,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Secret      bool     `json:"secret,omitempty" doc:"Whether the value is stored in the keyring."`
	Repeated    bool     `json:"repeated,omitempty" doc:"Whether several values are allowed."`
	Folder      bool     `json:"folder,omitempty" doc:"Whether the value is a file or folder of this machine."`
	Default     string   `json:"default,omitempty"`
	Choices     []string `json:"choices,omitempty"`
}

// Launch is how a server is started or reached. Its secrets are references.
type Launch struct {
	Command string
	Args    []string
	Env     map[string]string
	URL     string
	Headers map[string]string
	// Secrets are the given values of secrets, by the name of their input; "" for a required one that was not given.
	Secrets map[string]string
	// Folders are the files and folders that arguments name.
	Folders []string
}

// Values are what a user gives for an option.
type Values struct {
	Given map[string][]string // by the name of the input
	// Reference returns the reference to the secret of an input, such as ${keyring:NAME}.
	Reference func(input string) string
}

// Options returns the ways to start or reach the server, packages first. Their texts are cleaned.
func (e *Entry) Options() []Option {
	all := e.rawOptions()
	for i := range all {
		o := &all[i]
		o.Problem, o.URL = Clean(o.Problem), Clean(o.URL)
		for n := range o.Inputs {
			in := &o.Inputs[n]
			in.Name, in.Description, in.Default, in.Choices = Clean(in.Name), Clean(in.Description), Clean(in.Default), slices.Clone(in.Choices)
			for k := range in.Choices {
				in.Choices[k] = Clean(in.Choices[k])
			}
		}
	}
	return all
}

// rawOptions returns the options with the texts of the entry.
func (e *Entry) rawOptions() (all []Option) {
	count := map[string]int{}
	add := func(kind string, build func(b *builder)) {
		if count[kind]++; count[kind] > 1 {
			kind += "-" + strconv.Itoa(count[kind])
		}
		b := builder{inputs: []Input{}, values: Values{Reference: func(input string) string { return "${keyring:" + input + "}" }}}
		build(&b)
		o := Option{ID: kind, Inputs: b.inputs, URL: b.launch.URL}
		switch {
		case b.err != nil:
			o.Problem, o.URL = b.err.Error(), ""
		case o.URL == "":
			o.Command = append([]string{b.launch.Command}, b.launch.Args...)
		}
		all = append(all, o)
	}
	for _, p := range e.Packages {
		add(cmp.Or(optionKind.FindString(p.RegistryType), "unknown"), func(b *builder) { b.buildPackage(p) })
	}
	for _, t := range e.Remotes {
		add("remote", func(b *builder) { b.buildRemote(t) })
	}
	return all
}

var optionKind = regexp.MustCompile(`^[a-z]{1,16}$`)

// Launch returns the launch of an option with the values of a user. Its errors name the values that are missing.
func (e *Entry) Launch(option string, v Values) (Launch, error) {
	options := e.rawOptions()
	i := slices.IndexFunc(options, func(o Option) bool { return o.ID == option })
	if i < 0 {
		return Launch{}, errors.New("the entry has no such option")
	}
	b := builder{values: v}
	if i < len(e.Packages) {
		b.buildPackage(e.Packages[i])
	} else {
		b.buildRemote(e.Remotes[i-len(e.Packages)])
	}
	for name := range v.Given {
		if b.err == nil && !slices.ContainsFunc(b.inputs, func(in Input) bool { return in.Name == name }) {
			b.fail("the server does not ask for %q; it asks for %s", name, cmp.Or(strings.Join(inputNames(b.inputs), ", "), "nothing"))
		}
	}
	if b.err == nil && len(b.missing) > 0 {
		b.fail("it needs a value for %s", strings.Join(b.missing, ", "))
	}
	return b.launch, b.err
}

func inputNames(all []Input) (names []string) {
	for _, in := range all {
		names = append(names, in.Name)
	}
	return names
}

// builder builds the launch of one option, and collects what it asks for.
type builder struct {
	values  Values
	launch  Launch
	inputs  []Input
	missing []string // names of required inputs without a value
	ofUser  bool     // ask has returned a value of the user, or a reference to one
	err     error    // the first one
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`)
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	placeholder  = regexp.MustCompile(`\{[A-Za-z_][A-Za-z0-9_.-]*\}`)
)

// literal returns a text of the entry for a launch. It must be plain.
func (b *builder) literal(text string) string {
	switch {
	case !isPlain(text):
		b.fail("a value has a character that is not visible")
	case strings.Contains(text, "${") || strings.HasSuffix(text, "$"):
		b.fail(`a value contains "${" or ends in "$", which could refer to your secrets`)
	}
	return text
}

// ask returns the values of an input: those that the user gives, a reference to a secret, or the default; none if there
// is no value. A secret never is in the launch itself.
func (b *builder) ask(kind, name string, p Parameter) []string {
	in := Input{Name: name, Kind: kind, Description: p.Description, Required: p.IsRequired, Secret: p.IsSecret, Repeated: p.IsRepeated, Folder: p.Format == "filepath", Default: p.Default, Choices: p.Choices}
	if i := slices.IndexFunc(b.inputs, func(o Input) bool { return o.Name == name }); i >= 0 {
		if old := b.inputs[i]; old.Secret != in.Secret || old.Folder != in.Folder {
			b.fail("it asks for %s twice, in different ways", name)
		}
	} else {
		b.inputs = append(b.inputs, in)
	}
	given := b.values.Given[name]
	if len(given) > 1 && !p.IsRepeated {
		b.fail("%s takes one value", name)
	}
	for _, value := range given {
		b.checkGiven(in, value)
	}
	b.ofUser = b.ofUser || len(given) > 0 || in.Secret && in.Required
	switch {
	case in.Secret && (len(given) > 0 || in.Required):
		if len(given) > 0 && strings.HasPrefix(given[0], "${") && strings.HasSuffix(given[0], "}") {
			return given // a reference of the user
		}
		if b.launch.Secrets == nil {
			b.launch.Secrets = map[string]string{}
		}
		b.launch.Secrets[name] = strings.Join(given, "")
		return []string{b.values.Reference(name)}
	case len(given) > 0:
		for _, folder := range given {
			if in.Folder && !slices.Contains(b.launch.Folders, folder) {
				b.launch.Folders = append(b.launch.Folders, folder)
			}
		}
		return given
	case in.Default != "" && !in.Folder:
		return []string{b.literal(in.Default)}
	case in.Required && !slices.Contains(b.missing, name):
		b.missing = append(b.missing, name)
	}
	return nil
}

// checkGiven checks a value of the user against the entry.
func (b *builder) checkGiven(in Input, value string) {
	switch {
	case value == "" || !isPlain(value):
		b.fail("the value of %s is empty or has a character that is not visible", in.Name)
	case len(in.Choices) > 0 && !slices.Contains(in.Choices, value):
		b.fail("the value of %s must be one of: %s", in.Name, strings.Join(in.Choices, ", "))
	case in.Folder && !filepath.IsAbs(value):
		b.fail("the value of %s must be an absolute path", in.Name)
	}
}

// resolve returns the values of a parameter: its template with the variables, or what the user gives.
func (b *builder) resolve(kind, name string, p Parameter) []string {
	if !variableName.MatchString(strings.TrimLeft(name, "-")) && !headerName.MatchString(name) {
		b.fail("it has a name that is not allowed")
		return nil
	}
	if p.Value == "" {
		return b.ask(kind, name, p)
	}
	return b.fill(p.Value, p.Variables, p.IsRepeated, func(_ int, value string) string { return value })
}

// fill replaces the variables in a template. A name in braces that is no variable stays. If a variable has several
// values, there is one text for each. Without a value for a variable, there is no text. A reference may only be whole in
// the value of one variable, which then is of the user or the reference to a secret.
func (b *builder) fill(template string, variables map[string]Parameter, repeated bool, escape func(at int, value string) string) []string {
	b.literal(template)
	parts := placeholder.FindAllStringIndex(template, -1)
	values, most := make([][]string, len(parts)), 1
	for i, at := range parts {
		name := template[at[0]+1 : at[1]-1]
		p, declared := variables[name]
		if !declared {
			continue
		}
		p.IsRepeated, p.IsRequired = p.IsRepeated || repeated, true
		if values[i] = b.variable(name, p); len(values[i]) == 0 {
			return nil
		}
		most = max(most, len(values[i]))
	}
	var out []string
	for n := range most {
		text, end := "", 0
		add := func(piece string) {
			open := strings.LastIndex(text, "${")
			if strings.HasSuffix(text, "$") && strings.HasPrefix(piece, "{") || piece != "" && open >= 0 && !strings.Contains(text[open:], "}") {
				b.fail(`a value has parts that become "${", which could refer to your secrets`)
			}
			text += piece
		}
		for i, at := range parts {
			add(template[end:at[0]])
			if end = at[1]; values[i] == nil {
				add(template[at[0]:at[1]])
			} else {
				add(escape(at[0], values[i][min(n, len(values[i])-1)]))
			}
		}
		add(template[end:])
		out = append(out, text)
	}
	return out
}

// variable returns the values of a variable of a template. Its own value is a text without variables.
func (b *builder) variable(name string, p Parameter) []string {
	if p.Value != "" {
		return []string{b.literal(p.Value)}
	}
	return b.ask("variable", name, p)
}
