package clients

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// parseCommandLine converts a command line into a servers object, as in a client's file. The command line may also be a
// client's command that adds a server.
func parseCommandLine(line string) (*node, error) {
	all, err := splitShellWords(line)
	if err != nil {
		return nil, err
	}
	if len(all) > 0 && (all[0].text == "$" || all[0].text == ">" || all[0].text == "%") { // a shell prompt
		all = all[1:]
	}
	s := newCommandServer()
	if len(all) > 1 && path.Base(all[0].text) == "env" && assignment.MatchString(all[1].text) {
		all = all[1:]
	}
	for len(all) > 0 && assignment.MatchString(all[0].text) {
		s.addAssignment("env", all[0], "=")
		all = all[1:]
	}
	if len(all) == 0 {
		return nil, &syntaxError{position{1, 1}, "the command is missing", "give the command that starts the server"}
	}
	if n := countAddCommandWords(all); n > 0 {
		return s.parseAddCommand(all[:n], all[n:])
	}
	s.setCommandOrURL(all)
	return s.toServersNode("")
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// countAddCommandWords returns the number of words of a client's add command, or 0 for other commands.
func countAddCommandWords(all []shellWord) int {
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

// commandServer is a server given as a command line.
type commandServer struct {
	at      position
	command []shellWord
	url     string
	parts   map[string]*node // env and headers
	kind    string           // transport type, in the client's spelling
}

func newCommandServer() *commandServer {
	return &commandServer{at: position{1, 1}, parts: map[string]*node{}}
}

// addAssignment adds NAME=value to env, or Name: value to headers.
func (s *commandServer) addAssignment(to string, w shellWord, between string) bool {
	name, value, ok := strings.Cut(w.text, between)
	if s.parts[to] == nil {
		s.parts[to] = &node{kind: objectNode, at: w.at}
	}
	s.parts[to].addMember(nodeMember{strings.TrimSpace(name), w.at, newStringNode(strings.TrimSpace(value), w.at)})
	return ok
}

// setCommandOrURL sets the command, or the URL, from the words.
func (s *commandServer) setCommandOrURL(all []shellWord) {
	s.at = all[0].at
	if len(all) == 1 && isURL(all[0].text) {
		s.url = all[0].text
		return
	}
	s.command = all
}

// toServersNode returns a servers object with this server.
func (s *commandServer) toServersNode(name string) (*node, error) {
	n := &node{kind: objectNode, at: s.at}
	put := func(key string, v *node) { n.addMember(nodeMember{key, v.at, v}) }
	switch {
	case s.url != "":
		put("url", newStringNode(s.url, s.at))
	case len(s.command) > 0:
		put("command", newStringNode(s.command[0].text, s.command[0].at))
		args := &node{kind: listNode, at: s.at}
		for _, w := range s.command[1:] {
			args.items = append(args.items, newStringNode(w.text, w.at))
		}
		put("args", args)
	}
	if s.kind != "" {
		put("type", newStringNode(s.kind, s.at))
	}
	for _, key := range []string{"env", "headers"} {
		if v := s.parts[key]; v != nil {
			if err := v.checkDuplicates(); err != nil {
				return nil, err
			}
			put(key, v)
		}
	}
	if name == "" {
		name = deriveServerName(n)
	}
	servers := &node{kind: objectNode, at: s.at}
	servers.addMember(nodeMember{name, s.at, n})
	return servers, nil
}

func newStringNode(s string, at position) *node { return &node{kind: stringNode, text: s, at: at} }

// parseAddCommand parses the rest of a client's add command.
func (s *commandServer) parseAddCommand(of, rest []shellWord) (*node, error) {
	last := of[len(of)-1]
	if last.text != "add" {
		return parseAddJSON(last, rest)
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
				s.setCommandOrURL(rest)
				return s.toServersNode(name)
			}
		case !behind && strings.HasPrefix(w.text, "-"):
			if !given {
				if len(rest) == 0 {
					return nil, &syntaxError{w.at, quoteClipped(w.text) + " has no value", ""}
				}
				value, rest = rest[0].text, rest[1:]
			}
			if err := s.setOption(option, shellWord{value, w.at}); err != nil {
				return nil, err
			}
		case name == "":
			name = w.text
		default: // the rest belongs to the server
			s.setCommandOrURL(takeOptionsAfterURL(append([]shellWord{w}, rest...), s))
			return s.toServersNode(name)
		}
	}
	if s.url != "" && name != "" {
		return s.toServersNode(name)
	}
	return nil, &syntaxError{last.at, "the command of the server is missing", "copy the whole line"}
}

// takeOptionsAfterURL removes the options that may follow a URL.
func takeOptionsAfterURL(all []shellWord, s *commandServer) []shellWord {
	if !isURL(all[0].text) {
		return all
	}
	for i := 1; i+1 < len(all); i += 2 {
		if s.setOption(all[i].text, all[i+1]) != nil {
			return all
		}
	}
	if len(all)%2 == 0 {
		return all
	}
	return all[:1]
}

// setOption applies an option of a client's add command.
func (s *commandServer) setOption(name string, value shellWord) error {
	ok := true
	switch name {
	case "-e", "--env":
		ok = s.addAssignment("env", value, "=")
	case "-H", "--header":
		ok = s.addAssignment("headers", value, ":")
	case "-t", "--transport":
		s.kind = value.text
	case "-s", "--scope":
	case "--url":
		s.url = value.text
	case "--bearer-token-env-var":
		ok = s.addAssignment("headers", shellWord{"Authorization:Bearer ${" + value.text + "}", value.at}, ":")
	default:
		return &syntaxError{value.at, "the option " + quoteClipped(name) + " is not known", "remove it, or paste the command that starts the server"}
	}
	if !ok {
		return &syntaxError{value.at, "the value of " + quoteClipped(name) + " has no name", ""}
	}
	return nil
}

// parseAddJSON parses a server that is given as JSON. Its name precedes the JSON or is a member of it.
func parseAddJSON(how shellWord, rest []shellWord) (*node, error) {
	words := slices.DeleteFunc(slices.Clone(rest), func(w shellWord) bool { return strings.HasPrefix(w.text, "-") })
	name := ""
	if how.text == "add-json" && len(words) > 1 {
		name, words = words[0].text, words[1:]
	}
	if len(words) == 0 {
		return nil, &syntaxError{how.at, "the server is missing", "copy the whole line"}
	}
	n, err := parseJSON([]byte(words[0].text))
	if err != nil {
		return nil, err
	}
	if given := n.memberValue("name"); name == "" && given.isKind(stringNode) {
		name = given.text
	}
	if name == "" {
		name = deriveServerName(n)
	}
	servers := &node{kind: objectNode, at: words[0].at}
	servers.addMember(nodeMember{name, words[0].at, n})
	return servers, nil
}

func isURL(s string) bool {
	return (strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")) && !strings.ContainsAny(s, " \t\r\n\"'{}")
}

// runners are programs that start the program in their arguments.
var runners = []string{"npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "bun", "npm", "node", "deno", "python", "python3", "uv", "docker", "podman", "cmd"}

// deriveServerName derives a name for a server that has none.
func deriveServerName(n *node) string {
	if address := n.memberValue("url"); address.isKind(stringNode) {
		return deriveNameFromURL(address.text)
	}
	var all []string
	if c := n.memberValue("command"); c.isKind(stringNode) {
		all = append(all, c.text)
	}
	if args := n.memberValue("args"); args.isKind(listNode) {
		more, _ := toStringList(args)
		all = append(all, more...)
	}
	for i, w := range all {
		base := strings.TrimSuffix(path.Base(strings.ReplaceAll(w, `\`, "/")), ".exe")
		skip := strings.HasPrefix(w, "-") || slices.Contains(runners, base) || slices.Contains([]string{"run", "dlx", "exec", "tool", "x", "/c"}, w)
		if i > 0 && slices.Contains([]string{"-e", "--env", "-v", "--volume", "--mount", "-p", "--network", "--name", "--directory", "--from"}, all[i-1]) {
			skip = true
		}
		if !skip {
			return trimPackageAffixes(base)
		}
	}
	return "server"
}

// trimPackageAffixes strips common affixes from the name of a package or program.
func trimPackageAffixes(s string) string {
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

func deriveNameFromURL(s string) string {
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
