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

// entryBuilder converts a client's server into an entry.
type entryBuilder struct {
	*importReader
	client     string
	server     ImportedServer
	seenKeys   map[string]string // keys that are set, with the client's name for each
	exclude    []string
	include    []string // nil means everything
	skipReason string   // the reason why the server cannot be imported
}

func (b *entryBuilder) addNote(m nodeMember, message, hint string) {
	b.importReader.addNote(&b.server.Notes, m.at, m.name, message, hint)
}

// buildEntry converts the keys of a server in order, and then combinations of keys.
func (b *entryBuilder) buildEntry(n *node) {
	b.seenKeys = map[string]string{}
	b.readMembers(n)
	b.mergeToolLists(nodeMember{name: "", at: n.at})
	b.dropIneffectiveKeys(n)
	e := &b.server.Entry
	dir := rewriteReferences(e.WorkingDir, b.client, false, func(string, string) {})
	if dir != "" && !filepath.IsAbs(dir) && dir != "~" && !strings.HasPrefix(dir, "~/") && !strings.HasPrefix(dir, "${env:") {
		e.WorkingDir = ""
		b.addNote(b.memberThatSetKey("working_dir", n), "the directory is not an absolute path and was left out", "set a path that begins with / or ~/")
	}
	b.rewriteReferences(n)
}

// readMembers converts the keys of an object. In Continue, a nested object contains the connection.
func (b *entryBuilder) readMembers(n *node) {
	for _, m := range n.members {
		switch {
		case m.value.kind == nullNode:
		case m.name == "transport" && m.value.isKind(objectNode):
			b.readMembers(m.value)
		default:
			b.readMember(m)
		}
	}
}

// memberThatSetKey returns the client's member that set a key. If there is none, it returns a member at the server's
// position.
func (b *entryBuilder) memberThatSetKey(key string, n *node) nodeMember {
	for _, m := range n.members {
		if m.name == b.seenKeys[key] || m.name == key {
			return m
		}
	}
	return nodeMember{name: key, at: n.at}
}

// dropIneffectiveKeys removes keys that have no effect for this kind of server, such as args with a URL, and adds a
// note for each.
func (b *entryBuilder) dropIneffectiveKeys(n *node) {
	e := &b.server.Entry
	drop := func(key string, there bool, needs string) {
		if there {
			b.addNote(b.memberThatSetKey(key, n), quoteClipped(key)+" has no effect without "+needs+", and is left out", "")
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

// readMember converts one key. It tries client-specific keys, then MCPProxy's keys under any name, then keys that are
// known to have no effect.
func (b *entryBuilder) readMember(m nodeMember) {
	if read := clientKeys[m.name]; read != nil && read(b, m) {
		return
	}
	key, inverse := config.CanonicalServerKey(m.name)
	advice, foreign := config.OtherClientServerKeyAdvice(m.name, jsonKind(m.value))
	switch {
	case foreign:
		b.addNote(m, quoteClipped(m.name)+" has no effect here, and is left out", advice)
	case key == "":
		b.addNote(m, quoteClipped(m.name)+" is not known here, and left out", "")
	case b.seenKeys[key] != "" && key == "enabled_tools":
		b.skipReason = fmt.Sprintf("%s and %s both list the allowed tools", quoteClipped(m.name), quoteClipped(b.seenKeys[key]))
	case b.seenKeys[key] != "" && !isRestrictingKey(key): // two restrictions both apply
		b.addNote(m, fmt.Sprintf("%s is the same as %s, and is left out", quoteClipped(m.name), quoteClipped(b.seenKeys[key])), "")
	case !b.setConfigKey(m, key, inverse):
		b.addNote(m, quoteClipped(m.name)+" has a value that cannot be read, and is left out", "")
		if isRestrictingKey(key) {
			b.skipReason = quoteClipped(m.name) + " has a value that cannot be read"
		}
	default:
		b.seenKeys[key] = m.name
	}
}

// isRestrictingKey reports whether a key restricts a server, so that the server could do more than intended without the
// key.
func isRestrictingKey(key string) bool {
	return slices.Contains([]string{"enabled", "quarantined", "enabled_tools", "disabled_tools"}, key)
}

// jsonKind returns the first byte of the value in JSON.
func jsonKind(n *node) byte {
	if n.isKind(boolNode) {
		return n.text[0]
	}
	return byte(n.kind)
}

// setConfigKey sets a key of MCPProxy, and reports whether the value is usable.
func (b *entryBuilder) setConfigKey(m nodeMember, key string, inverse bool) bool {
	e := &b.server.Entry
	v := m.value
	switch key {
	case "name":
		return true
	case "protocol":
		return b.readProtocol(v)
	case "command":
		return b.readCommand(v)
	case "args":
		args, ok := toStringList(v)
		e.Args = append(e.Args, args...)
		return ok
	case "env":
		return copyStringMembers(&e.Env, v)
	case "headers":
		return copyStringMembers(&e.Headers, v)
	case "working_dir":
		return copyScalarText(&e.WorkingDir, v)
	case "url":
		return copyScalarText(&e.URL, v)
	case "enabled":
		on := v.text == "true"
		if on == inverse {
			e.Enabled = new(bool)
		}
		return v.isKind(boolNode)
	case "quarantined":
		e.Quarantined = v.text == "true"
		return v.isKind(boolNode)
	case "enabled_tools":
		tools, ok := toStringList(v)
		b.include = append([]string{}, tools...)
		return ok
	case "disabled_tools":
		tools, ok := toStringList(v)
		b.exclude = append(b.exclude, tools...)
		return ok
	case "call_timeout":
		return v.isKind(stringNode) && copyScalarText(&e.CallTimeout, v)
	case "trust":
		if v.text == string(config.TrustManual) {
			e.Trust = config.TrustManual
			return true
		}
	}
	b.addNote(m, quoteClipped(m.name)+" is not imported from a text", "set it afterwards: mcpproxy upstream set "+b.server.Name+" "+key)
	return true
}

// readProtocol converts the transport type.
func (b *entryBuilder) readProtocol(v *node) bool {
	switch v.text {
	case "stdio", "sse", "http":
		b.server.Entry.Protocol = v.text
	case "streamable-http", "streamableHttp", "streamable_http":
		b.server.Entry.Protocol = "http"
	case "local", "remote", "auto":
	case "builtin", "platform", "frontend", "inline_python":
		b.skipReason = "it is built into the client"
	default:
		return false
	}
	return v.isKind(stringNode)
}

// readCommand converts a command: a string, a list with arguments, or an object of both.
func (b *entryBuilder) readCommand(v *node) bool {
	e := &b.server.Entry
	switch v.kind {
	case listNode:
		words, ok := toStringList(v)
		if !ok || len(words) == 0 {
			return false
		}
		e.Command, e.Args = words[0], append(words[1:], e.Args...)
		return true
	case objectNode:
		args, ok := []string(nil), true
		if given := v.memberValue("args"); given != nil {
			args, ok = toStringList(given)
		}
		e.Args = append(args, e.Args...)
		if env := v.memberValue("env"); env != nil {
			ok = copyStringMembers(&e.Env, env) && ok
		}
		return copyScalarText(&e.Command, v.memberValue("path")) && ok
	}
	return copyScalarText(&e.Command, v)
}

// milliseconds and seconds contain the clients whose timeout has that unit.
var (
	milliseconds = []string{claudeCode, gemini}
	seconds      = []string{cline, goose}
)

// clientKeys contains the client-specific keys. The functions report whether they handled the key.
var clientKeys = map[string]func(*entryBuilder, nodeMember) bool{
	"timeout": func(b *entryBuilder, m nodeMember) bool {
		switch {
		case slices.Contains(milliseconds, b.client):
			return b.readTimeout(m, time.Millisecond)
		case slices.Contains(seconds, b.client):
			return b.readTimeout(m, time.Second)
		}
		return false
	},
	"tool_timeout_sec": func(b *entryBuilder, m nodeMember) bool { return b.readTimeout(m, time.Second) },
	"uri": func(b *entryBuilder, m nodeMember) bool {
		return b.client == goose && copyScalarText(&b.server.Entry.URL, m.value)
	},
	"cmd": func(b *entryBuilder, m nodeMember) bool {
		return b.client == goose && copyScalarText(&b.server.Entry.Command, m.value)
	},
	"envs": func(b *entryBuilder, m nodeMember) bool {
		return b.client == goose && copyStringMembers(&b.server.Entry.Env, m.value)
	},
	"env_keys": func(b *entryBuilder, m nodeMember) bool { return b.client == goose && b.readEnvPassthrough(m) },
	"env_vars": func(b *entryBuilder, m nodeMember) bool { return b.client == codex && b.readEnvPassthrough(m) },
	"available_tools": func(b *entryBuilder, m nodeMember) bool {
		if b.client != goose {
			return false
		}
		tools, ok := toStringList(m.value)
		if !ok {
			b.skipReason = quoteClipped(m.name) + " has a value that cannot be read"
		}
		if len(tools) > 0 { // in Goose an empty list allows all
			b.include = tools
		}
		return true
	},
	"http_headers": func(b *entryBuilder, m nodeMember) bool { return copyStringMembers(&b.server.Entry.Headers, m.value) },
	"requestOptions": func(b *entryBuilder, m nodeMember) bool {
		headers := m.value.memberValue("headers")
		return headers != nil && copyStringMembers(&b.server.Entry.Headers, headers)
	},
	"env_http_headers": func(b *entryBuilder, m nodeMember) bool {
		for _, h := range m.value.members {
			if h.value.isKind(stringNode) {
				putString(&b.server.Entry.Headers, h.name, "${env:"+h.value.text+"}")
			}
		}
		return m.value.isKind(objectNode)
	},
	"bearer_token_env_var": func(b *entryBuilder, m nodeMember) bool {
		if m.value.isKind(stringNode) {
			putString(&b.server.Entry.Headers, "Authorization", "Bearer ${env:"+m.value.text+"}")
		}
		return m.value.isKind(stringNode)
	},
	"uses": func(b *entryBuilder, m nodeMember) bool {
		b.skipReason = "it is a block of the client's hub, which defines its launch elsewhere"
		return true
	},
	"oauth": func(b *entryBuilder, m nodeMember) bool {
		b.addNote(m, `"oauth" is not imported from a text`, "log in with: mcpproxy login "+b.server.Name)
		return true
	},
}

// readEnvPassthrough converts a list of names of environment variables to pass on into references in env.
func (b *entryBuilder) readEnvPassthrough(m nodeMember) bool {
	names, ok := toStringList(m.value)
	for _, name := range names {
		putString(&b.server.Entry.Env, name, "${env:"+name+"}")
	}
	if ok && len(names) > 0 {
		b.addNote(m, quoteClipped(m.name)+" is written as references in env", "set these variables in MCPProxy's environment")
	}
	return ok
}

// readTimeout converts a call timeout.
func (b *entryBuilder) readTimeout(m nodeMember, unit time.Duration) bool {
	n, err := strconv.ParseFloat(m.value.text, 64)
	limit := time.Duration(n * float64(unit))
	if err != nil || n > float64(24*time.Hour/unit) || limit < time.Millisecond {
		return false
	}
	b.server.Entry.CallTimeout = strconv.FormatFloat(limit.Round(time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	b.addNote(m, fmt.Sprintf("%s is written as call_timeout %s", quoteClipped(m.name), b.server.Entry.CallTimeout), "")
	return true
}

// mergeToolLists merges the client's tool lists into one, because MCPProxy accepts only one of them.
func (b *entryBuilder) mergeToolLists(m nodeMember) {
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
		b.addNote(m, "the lists of allowed and denied tools are combined into one list", "")
		for _, name := range append(b.include, b.exclude...) {
			if strings.ContainsAny(name, "*?") {
				b.skipReason = "it allows tools by a pattern, and denies others"
			}
		}
	}
	e.EnabledTools = b.include
	if len(b.include) == 0 {
		e.EnabledTools, e.Enabled = nil, new(bool)
		b.addNote(m, "the client allows no tool of the server, so it is imported as disabled", "")
	}
}

// rewriteReferences rewrites unambiguous references into MCPProxy's syntax.
func (b *entryBuilder) rewriteReferences(n *node) {
	e := &b.server.Entry
	rewrite := func(key string, shell bool, texts ...*string) {
		m := b.memberThatSetKey(key, n)
		for _, s := range texts {
			*s = rewriteReferences(*s, b.client, shell, func(message, hint string) { b.addNote(m, message, hint) })
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
	rewrite("args", isShellCommand(e.Command), args...)
	all("env", e.Env)
	all("headers", e.Headers)
}
