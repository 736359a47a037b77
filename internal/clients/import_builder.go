package clients

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/config"
)

// builder makes an entry of ours of a client's.
type builder struct {
	*reader
	client  string
	server  ServerEntry
	from    map[string]string // our keys that are said already, and by which name
	exclude []string
	include []string // nil: everything
	unfit   string   // why the server cannot be taken over
}

func (b *builder) tell(m fileMember, message, hint string) {
	b.note(&b.server.Notes, m.at, m.name, message, hint)
}

// read reads the keys of a server, in their order, and then what takes several of
// them together.
func (b *builder) read(n *node) {
	b.from = map[string]string{}
	b.members(n)
	b.tools(fileMember{name: "", at: n.at})
	b.useless(n)
	e := &b.server.Entry
	dir := rewritten(e.WorkingDir, b.client, false, func(string, string) {})
	if dir != "" && !filepath.IsAbs(dir) && dir != "~" && !strings.HasPrefix(dir, "~/") && !strings.HasPrefix(dir, "${env:") {
		e.WorkingDir = ""
		b.tell(b.given("working_dir", n), "the directory is not absolute, and left out", "set one that begins with / or ~/")
	}
	b.references(n)
}

// members reads the keys of an object. Continue has those that say how the server is
// reached in an object of their own.
func (b *builder) members(n *node) {
	for _, m := range n.members {
		switch {
		case m.value.kind == null:
		case m.name == "transport" && m.value.is(fileObject):
			b.members(m.value)
		default:
			b.member(m)
		}
	}
}

// given is the member that says a key of ours, or for want of one, the server.
func (b *builder) given(key string, n *node) fileMember {
	for _, m := range n.members {
		if m.name == b.from[key] || m.name == key {
			return m
		}
	}
	return fileMember{name: key, at: n.at}
}

// useless leaves out what only the other kind of server has a use for.
func (b *builder) useless(n *node) {
	e := &b.server.Entry
	drop := func(key string, there bool, needs string) {
		if there {
			b.tell(b.given(key, n), quote(key)+" has no effect without "+needs+", and is left out", "")
		}
	}
	switch {
	case e.URL != "" && e.Command == "":
		drop("args", len(e.Args) > 0, "command")
		drop("env", len(e.Env) > 0, "command")
		drop("working_dir", e.WorkingDir != "", "command")
		e.Args, e.Env, e.WorkingDir = nil, nil, ""
	case e.Command != "" && e.URL == "":
		drop("headers", len(e.Headers) > 0, "url")
		e.Headers = nil
	}
}

// fileMember reads one key: what only one client has, then what is ours by this or
// another name, then what is known to have no effect.
func (b *builder) member(m fileMember) {
	if read := special[m.name]; read != nil && read(b, m) {
		return
	}
	key, inverse := config.ServerKey(m.name)
	advice, foreign := config.ForeignKey(m.name, jsonKind(m.value))
	switch {
	case foreign:
		b.tell(m, quote(m.name)+" has no effect here, and is left out", advice)
	case key == "":
		b.tell(m, quote(m.name)+" is not known here, and left out", "")
	case b.from[key] != "" && key == "enabled_tools":
		b.unfit = fmt.Sprintf("%s and %s both say which tools are allowed", quote(m.name), quote(b.from[key]))
	case b.from[key] != "" && !narrows(key): // of two that narrow both count
		b.tell(m, fmt.Sprintf("%s says the same as %s, and is left out", quote(m.name), quote(b.from[key])), "")
	case !b.own(m, key, inverse):
		b.tell(m, quote(m.name)+" has a value that cannot be read, and is left out", "")
		if narrows(key) {
			b.unfit = quote(m.name) + " has a value that cannot be read"
		}
	default:
		b.from[key] = m.name
	}
}

// narrows reports whether a key takes something away, so that a server without
// it can do more than was meant.
func narrows(key string) bool {
	return slices.Contains([]string{"enabled", "quarantined", "enabled_tools", "disabled_tools"}, key)
}

// jsonKind is the first byte that a value has in JSON.
func jsonKind(n *node) byte {
	if n.is(boolean) {
		return n.text[0]
	}
	return byte(n.kind)
}

// own reads a key of ours, and reports whether its value can be used.
func (b *builder) own(m fileMember, key string, inverse bool) bool {
	e := &b.server.Entry
	v := m.value
	switch key {
	case "name":
		return true
	case "protocol":
		return b.protocol(v)
	case "command":
		return b.command(v)
	case "args":
		args, ok := texts(v)
		e.Args = append(e.Args, args...)
		return ok
	case "env":
		return merge(&e.Env, v)
	case "headers":
		return merge(&e.Headers, v)
	case "working_dir":
		return set(&e.WorkingDir, v)
	case "url":
		return set(&e.URL, v)
	case "enabled":
		on := v.text == "true"
		if on == inverse {
			e.Enabled = new(bool)
		}
		return v.is(boolean)
	case "quarantined":
		e.Quarantined = v.text == "true"
		return v.is(boolean)
	case "enabled_tools":
		tools, ok := texts(v)
		b.include = append([]string{}, tools...)
		return ok
	case "disabled_tools":
		tools, ok := texts(v)
		b.exclude = append(b.exclude, tools...)
		return ok
	case "call_timeout":
		return v.is(text) && set(&e.CallTimeout, v)
	case "trust":
		if v.text == string(config.TrustManual) {
			e.Trust = config.TrustManual
			return true
		}
	}
	b.tell(m, quote(m.name)+" is not taken over from a text", "set it afterwards: mcpproxy upstream set "+b.server.Name+" "+key)
	return true
}

// protocol reads how the server is reached.
func (b *builder) protocol(v *node) bool {
	switch v.text {
	case "stdio", "sse", "http":
		b.server.Entry.Protocol = v.text
	case "streamable-http", "streamableHttp", "streamable_http":
		b.server.Entry.Protocol = "http"
	case "local", "remote", "auto":
	case "builtin", "platform", "frontend", "inline_python":
		b.unfit = "it is built into the client"
	default:
		return false
	}
	return v.is(text)
}

// command reads the program to start: a text, a list with its arguments, or an
// fileObject of both.
func (b *builder) command(v *node) bool {
	e := &b.server.Entry
	switch v.kind {
	case list:
		words, ok := texts(v)
		if !ok || len(words) == 0 {
			return false
		}
		e.Command, e.Args = words[0], append(words[1:], e.Args...)
		return true
	case fileObject:
		args, ok := []string(nil), true
		if given := v.get("args"); given != nil {
			args, ok = texts(given)
		}
		e.Args = append(args, e.Args...)
		if env := v.get("env"); env != nil {
			ok = merge(&e.Env, env) && ok
		}
		return set(&e.Command, v.get("path")) && ok
	}
	return set(&e.Command, v)
}

// milliseconds are the clients that count timeout in them, seconds the others
// of which it is known.
var (
	milliseconds = []string{claudeCode, gemini}
	seconds      = []string{cline, goose}
)

// special are the keys that mean something in one client, or in few. What they
// return reports whether they have read it.
var special = map[string]func(*builder, fileMember) bool{
	"timeout": func(b *builder, m fileMember) bool {
		switch {
		case slices.Contains(milliseconds, b.client):
			return b.timeout(m, time.Millisecond)
		case slices.Contains(seconds, b.client):
			return b.timeout(m, time.Second)
		}
		return false
	},
	"tool_timeout_sec": func(b *builder, m fileMember) bool { return b.timeout(m, time.Second) },
	"uri": func(b *builder, m fileMember) bool {
		return b.client == goose && set(&b.server.Entry.URL, m.value)
	},
	"cmd": func(b *builder, m fileMember) bool {
		return b.client == goose && set(&b.server.Entry.Command, m.value)
	},
	"envs": func(b *builder, m fileMember) bool {
		return b.client == goose && merge(&b.server.Entry.Env, m.value)
	},
	"env_keys": func(b *builder, m fileMember) bool { return b.client == goose && b.variables(m) },
	"env_vars": func(b *builder, m fileMember) bool { return b.client == codex && b.variables(m) },
	"available_tools": func(b *builder, m fileMember) bool {
		if b.client != goose {
			return false
		}
		tools, ok := texts(m.value)
		if !ok {
			b.unfit = quote(m.name) + " has a value that cannot be read"
		}
		if len(tools) > 0 { // in Goose an empty list allows all
			b.include = tools
		}
		return true
	},
	"http_headers": func(b *builder, m fileMember) bool { return merge(&b.server.Entry.Headers, m.value) },
	"requestOptions": func(b *builder, m fileMember) bool {
		headers := m.value.get("headers")
		return headers != nil && merge(&b.server.Entry.Headers, headers)
	},
	"env_http_headers": func(b *builder, m fileMember) bool {
		for _, h := range m.value.members {
			if h.value.is(text) {
				clientfilePut(&b.server.Entry.Headers, h.name, "${env:"+h.value.text+"}")
			}
		}
		return m.value.is(fileObject)
	},
	"bearer_token_env_var": func(b *builder, m fileMember) bool {
		if m.value.is(text) {
			clientfilePut(&b.server.Entry.Headers, "Authorization", "Bearer ${env:"+m.value.text+"}")
		}
		return m.value.is(text)
	},
	"uses": func(b *builder, m fileMember) bool {
		b.unfit = "it is a block of the client's hub, which says elsewhere how it is started"
		return true
	},
	"oauth": func(b *builder, m fileMember) bool {
		b.tell(m, `"oauth" is not taken over from a text`, "log in with: mcpproxy upstream login "+b.server.Name)
		return true
	},
}

// variables reads a list of variables that the client hands on.
func (b *builder) variables(m fileMember) bool {
	names, ok := texts(m.value)
	for _, name := range names {
		clientfilePut(&b.server.Entry.Env, name, "${env:"+name+"}")
	}
	if ok && len(names) > 0 {
		b.tell(m, quote(m.name)+" is written as references in env", "set these variables where MCPProxy is started")
	}
	return ok
}

// timeout reads how long a call may take.
func (b *builder) timeout(m fileMember, unit time.Duration) bool {
	n, err := strconv.ParseFloat(m.value.text, 64)
	limit := time.Duration(n * float64(unit))
	if err != nil || n > float64(24*time.Hour/unit) || limit < time.Millisecond {
		return false
	}
	b.server.Entry.CallTimeout = strconv.FormatFloat(limit.Round(time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	b.tell(m, fmt.Sprintf("%s is written as call_timeout %s", quote(m.name), b.server.Entry.CallTimeout), "")
	return true
}

// tools makes one list of those that clients have: here they exclude each other.
func (b *builder) tools(m fileMember) {
	e := &b.server.Entry
	switch {
	case b.include == nil || slices.Equal(b.include, []string{"*"}):
		e.DisabledTools = b.exclude
		return
	case len(b.exclude) > 0:
		forbidden := map[string]bool{}
		for _, name := range b.exclude {
			forbidden[name] = true
		}
		b.include = slices.DeleteFunc(b.include, func(name string) bool { return forbidden[name] })
		b.tell(m, "the tools that are allowed and those that are forbidden are written as one list", "")
		for _, name := range append(b.include, b.exclude...) {
			if strings.ContainsAny(name, "*?") {
				b.unfit = "it allows tools by a pattern, and forbids others"
			}
		}
	}
	e.EnabledTools = b.include
	if len(b.include) == 0 {
		e.EnabledTools, e.Enabled = nil, new(bool)
		b.tell(m, "no tool is allowed, so that the server is switched off", "")
	}
}

// references writes what is certain to be a reference as it is written here.
func (b *builder) references(n *node) {
	e := &b.server.Entry
	rewrite := func(key string, shell bool, texts ...*string) {
		m := b.given(key, n)
		for _, s := range texts {
			*s = rewritten(*s, b.client, shell, func(message, hint string) { b.tell(m, message, hint) })
		}
	}
	all := func(key string, values map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			s := values[name]
			rewrite(key, false, &s)
			values[name] = s
		}
	}
	rewrite("command", false, &e.Command)
	rewrite("url", false, &e.URL)
	rewrite("working_dir", false, &e.WorkingDir)
	args := make([]*string, len(e.Args))
	for i := range e.Args {
		args[i] = &e.Args[i]
	}
	rewrite("args", isShell(e.Command), args...)
	all("env", e.Env)
	all("headers", e.Headers)
}
