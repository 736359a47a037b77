package clients

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// command makes an object of a command line, as a client's file has it, with the
// name of the server. It may be the command of a client that adds a server.
func command(line string) (*node, error) {
	all, err := words(line)
	if err != nil {
		return nil, err
	}
	if len(all) > 0 && (all[0].text == "$" || all[0].text == ">" || all[0].text == "%") { // a prompt
		all = all[1:]
	}
	s := newServer()
	if len(all) > 1 && path.Base(all[0].text) == "env" && assignment.MatchString(all[1].text) {
		all = all[1:]
	}
	for len(all) > 0 && assignment.MatchString(all[0].text) {
		s.assign("env", all[0], "=")
		all = all[1:]
	}
	if len(all) == 0 {
		return nil, &mistake{place{1, 1}, "there is no command", "give the command that starts the server"}
	}
	if n := adds(all); n > 0 {
		return s.added(all[:n], all[n:])
	}
	s.run(all)
	return s.node("")
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// adds returns of how many words the command of a client consists that adds a
// server, 0 for any other command.
func adds(all []word) int {
	text := func(i int) string {
		if i < len(all) {
			return all[i].text
		}
		return ""
	}
	switch {
	case text(1) == "mcp" && (text(2) == "add" || text(2) == "add-json"):
		return 3
	case text(1) == "--add-mcp":
		return 2
	}
	return 0
}

// written is a server that is written as a command.
type written struct {
	at      place
	command []word
	url     string
	parts   map[string]*node // env and headers
	kind    string           // how it is reached, as the client calls it
}

func newServer() *written { return &written{at: place{1, 1}, parts: map[string]*node{}} }

// assign adds a word such as NAME=value to env, or Name: value to headers.
func (s *written) assign(to string, w word, between string) bool {
	name, value, ok := strings.Cut(w.text, between)
	if s.parts[to] == nil {
		s.parts[to] = &node{kind: fileObject, at: w.at}
	}
	s.parts[to].add(fileMember{strings.TrimSpace(name), w.at, textNode(strings.TrimSpace(value), w.at)})
	return ok
}

// run takes the words of the command, or a URL.
func (s *written) run(all []word) {
	s.at = all[0].at
	if len(all) == 1 && isURL(all[0].text) {
		s.url = all[0].text
		return
	}
	s.command = all
}

// node returns the server as an object of servers has it, which is one of the one.
func (s *written) node(name string) (*node, error) {
	n := &node{kind: fileObject, at: s.at}
	put := func(key string, v *node) { n.add(fileMember{key, v.at, v}) }
	switch {
	case s.url != "":
		put("url", textNode(s.url, s.at))
	case len(s.command) > 0:
		put("command", textNode(s.command[0].text, s.command[0].at))
		args := &node{kind: list, at: s.at}
		for _, w := range s.command[1:] {
			args.items = append(args.items, textNode(w.text, w.at))
		}
		put("args", args)
	}
	if s.kind != "" {
		put("type", textNode(s.kind, s.at))
	}
	for _, key := range []string{"env", "headers"} {
		if v := s.parts[key]; v != nil {
			if err := v.distinct(); err != nil {
				return nil, err
			}
			put(key, v)
		}
	}
	if name == "" {
		name = nameOf(n)
	}
	servers := &node{kind: fileObject, at: s.at}
	servers.add(fileMember{name, s.at, n})
	return servers, nil
}

func textNode(s string, at place) *node { return &node{kind: text, text: s, at: at} }

// added reads the rest of a command that adds a server to a client.
func (s *written) added(of, rest []word) (*node, error) {
	last := of[len(of)-1]
	if last.text != "add" {
		return addedAsJSON(last, rest)
	}
	name, behind := "", false
	for len(rest) > 0 {
		w := rest[0]
		rest = rest[1:]
		option, value, given := strings.Cut(w.text, "=")
		switch {
		case !behind && w.text == "--":
			behind = true
			if name != "" && len(rest) > 0 {
				s.run(rest)
				return s.node(name)
			}
		case !behind && strings.HasPrefix(w.text, "-"):
			if !given {
				if len(rest) == 0 {
					return nil, &mistake{w.at, quote(w.text) + " has no value", ""}
				}
				value, rest = rest[0].text, rest[1:]
			}
			if err := s.option(option, word{value, w.at}); err != nil {
				return nil, err
			}
		case name == "":
			name = w.text
		default: // what follows is the server's own
			s.run(withEnd(append([]word{w}, rest...), s))
			return s.node(name)
		}
	}
	if s.url != "" && name != "" {
		return s.node(name)
	}
	return nil, &mistake{last.at, "the command of the server is missing", "copy the whole line"}
}

// withEnd takes the options off that some write behind a URL.
func withEnd(all []word, s *written) []word {
	if !isURL(all[0].text) {
		return all
	}
	for i := 1; i+1 < len(all); i += 2 {
		if s.option(all[i].text, all[i+1]) != nil {
			return all
		}
	}
	if len(all)%2 == 0 {
		return all
	}
	return all[:1]
}

// option reads an option of a client's command that adds a server.
func (s *written) option(name string, value word) error {
	ok := true
	switch name {
	case "-e", "--env":
		ok = s.assign("env", value, "=")
	case "-H", "--header":
		ok = s.assign("headers", value, ":")
	case "-t", "--transport":
		s.kind = value.text
	case "-s", "--scope":
	case "--url":
		s.url = value.text
	case "--bearer-token-env-var":
		ok = s.assign("headers", word{"Authorization:Bearer ${" + value.text + "}", value.at}, ":")
	default:
		return &mistake{value.at, "the option " + quote(name) + " is not known", "take it out, or paste the command that starts the server"}
	}
	if !ok {
		return &mistake{value.at, "the value of " + quote(name) + " has no name", ""}
	}
	return nil
}

// addedAsJSON reads a server that a client is given as JSON: behind its name, or
// with its name in it.
func addedAsJSON(how word, rest []word) (*node, error) {
	words := slices.DeleteFunc(slices.Clone(rest), func(w word) bool { return strings.HasPrefix(w.text, "-") })
	name := ""
	if how.text == "add-json" && len(words) > 1 {
		name, words = words[0].text, words[1:]
	}
	if len(words) == 0 {
		return nil, &mistake{how.at, "the server is missing", "copy the whole line"}
	}
	n, err := fromJSON([]byte(words[0].text))
	if err != nil {
		return nil, err
	}
	if given := n.get("name"); name == "" && given.is(text) {
		name = given.text
	}
	if name == "" {
		name = nameOf(n)
	}
	servers := &node{kind: fileObject, at: words[0].at}
	servers.add(fileMember{name, words[0].at, n})
	return servers, nil
}

func isURL(s string) bool {
	return (strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")) && !strings.ContainsAny(s, " \t\r\n\"'{}")
}

// runners start a program that is named behind them.
var runners = []string{"npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "bun", "npm", "node", "deno", "python", "python3", "uv", "docker", "podman", "cmd"}

// nameOf returns a name for a server that has none, by what it is.
func nameOf(n *node) string {
	if address := n.get("url"); address.is(text) {
		return nameOfURL(address.text)
	}
	var all []string
	if c := n.get("command"); c.is(text) {
		all = append(all, c.text)
	}
	if args := n.get("args"); args.is(list) {
		more, _ := texts(args)
		all = append(all, more...)
	}
	for i, w := range all {
		base := strings.TrimSuffix(path.Base(strings.ReplaceAll(w, `\`, "/")), ".exe")
		skip := strings.HasPrefix(w, "-") || slices.Contains(runners, base) || slices.Contains([]string{"run", "dlx", "exec", "tool", "x", "/c"}, w)
		if i > 0 && slices.Contains([]string{"-e", "--env", "-v", "--volume", "--mount", "-p", "--network", "--name", "--directory", "--from"}, all[i-1]) {
			skip = true
		}
		if !skip {
			return shortName(base)
		}
	}
	return "server"
}

// shortName takes what says nothing off the name of a package or a program.
func shortName(s string) string {
	if at := strings.LastIndexByte(s, '@'); at > 0 {
		s = s[:at]
	}
	s, _, _ = strings.Cut(s, ":")
	for _, ext := range []string{".js", ".mjs", ".ts", ".py"} {
		s = strings.TrimSuffix(s, ext)
	}
	for _, part := range []string{"mcp-server-", "server-", "mcp-", "mcp_server_"} {
		s = strings.TrimPrefix(s, part)
	}
	for _, part := range []string{"-mcp-server", "-server", "-mcp", "_mcp"} {
		s = strings.TrimSuffix(s, part)
	}
	if s == "" {
		return "server"
	}
	return s
}

func nameOfURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return "server"
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return "server"
	}
	labels := strings.Split(host, ".")
	for len(labels) > 2 && slices.Contains([]string{"mcp", "api", "www"}, labels[0]) {
		labels = labels[1:]
	}
	return labels[0]
}
