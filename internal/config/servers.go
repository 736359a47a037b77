package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/catalog/tool"
)

// entry is where a server stands in the file.
type entry struct {
	value  hujson.Value
	path   string
	name   string // empty when a list has none
	at     int    // of the name, or of the server when it has none
	inList bool
}

// servers decodes mcpServers in either form.
func (d *decoder) servers(v hujson.Value, path string) (any, any) {
	resolved, shown := []Server{}, []Server{}
	taken := map[string]string{} // by what the name looks like
	for e := range d.entries(v, path) {
		if e.name != "" && !d.distinct(taken, e) {
			continue
		}
		r, s := d.server(e)
		launch := launchOf(s)
		fingerprint := launch.fingerprint()
		r.launch, r.launchFingerprint = &launch, &fingerprint
		written := s
		if r.TrySSE {
			written.Protocol = "auto"
		}
		s = presentable(s)
		r.written, r.shown = &written, &s
		resolved, shown = append(resolved, r), append(shown, s)
	}
	return resolved, shown
}

// entries walks mcpServers in either form.
func (d *decoder) entries(v hujson.Value, path string) func(yield func(entry) bool) {
	return func(yield func(entry) bool) {
		switch value := v.Value.(type) {
		case *hujson.Object:
			for m, name := range d.members(value, path) {
				e := entry{m.Value, join(path, name), name, m.Name.StartOffset, false}
				if err := tool.CheckServerName(name); err != nil {
					d.wrong(e.at, e.path, err.Error(), "the name is part of the names of its tools and of files")
				}
				if !yield(e) {
					return
				}
			}
		case *hujson.Array:
			for i, element := range value.Elements {
				name, at := nameOf(element)
				if !yield(entry{element, fmt.Sprintf("%s[%d]", path, i), name, at, true}) {
					return
				}
			}
		default:
			d.wrongType(v, path, "an object (name → server) or a list of servers")
		}
	}
}

// nameOf finds the name of a server in the list form, and its place. The name
// is decoded, and judged, with the other keys.
func nameOf(v hujson.Value) (string, int) {
	if m := member(v, "name"); m != nil {
		if l, ok := m.Value.Value.(hujson.Literal); ok && l.Kind() == '"' {
			return l.String(), m.Value.StartOffset
		}
	}
	return "", v.StartOffset
}

// distinct reports whether no other server has the name, or one that a person or
// a file system may take for it.
func (d *decoder) distinct(taken map[string]string, e entry) bool {
	name := e.name
	looks := Looks(name)
	for _, look := range looks {
		other, found := taken[look]
		switch {
		case found && other == name:
			d.wrong(e.at, e.path, fmt.Sprintf("there are two servers with the name %s", quote(name)), "give one of them another name")
			return false
		case found:
			d.wrong(e.at, e.path, fmt.Sprintf("the name %s looks like %s", quote(name), quote(other)), "names must differ by more than case and look-alike characters")
			return false
		}
	}
	for _, look := range looks {
		taken[look] = name
	}
	return true
}

// Looks are what a name looks like: no two servers have one in common.
func Looks(name string) []string {
	return []string{strings.ToLower(name), lookAlikes.Replace(name)}
}

var lookAlikes = strings.NewReplacer("I", "l", "1", "l", "0", "o", "O", "o", "rn", "m", "vv", "w")

// server decodes one server.
func (d *decoder) server(e entry) (resolved, shown Server) {
	resolved = d.newServer
	resolved.Name = e.name
	shown = resolved
	if _, ok := e.value.Value.(*hujson.Object); !ok {
		d.wrongType(e.value, e.path, "an object")
		return resolved, shown
	}
	d.parked, d.within, d.withinPath = d.literally || parked(e.value), e.name, e.path
	d.inServer, d.lacks = true, nil
	g := d.object(e.value, e.path, resolved.keys(), shown.keys())
	d.parked, d.within, d.withinPath, d.inServer = false, "", "", false
	resolved.unset = d.lacks
	d.named(g, e)
	d.launch(g, &resolved, e)
	d.login(&resolved, e)
	d.tools(g, &resolved, e.path)
	shown.Protocol = resolved.Protocol
	return resolved, shown
}

// parked reports whether the server is off, before anything else is decoded.
func parked(v hujson.Value) bool {
	off := func(key string, value hujson.Kind) bool {
		m := member(v, key)
		return m != nil && m.Value.Value.Kind() == value
	}
	return off("enabled", 'f') || off("disabled", 't')
}

// member finds a member of an object.
func member(v hujson.Value, name string) *hujson.ObjectMember {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	for i := range obj.Members {
		if l, ok := obj.Members[i].Name.Value.(hujson.Literal); ok && l.String() == name {
			return &obj.Members[i]
		}
	}
	return nil
}

// named checks that the server has one name: the key in the object form, the
// member "name" in the list form.
func (d *decoder) named(g given, e entry) {
	_, found := g["name"]
	switch {
	case e.inList && !found:
		d.wrong(e.at, e.path, "the server has no name", `add "name", or write mcpServers as an object`)
	case !e.inList && found:
		if other, at := nameOf(e.value); other != e.name {
			d.wrong(at, join(e.path, "name"), fmt.Sprintf("the server is called %s already", quote(e.name)), "take name out")
		}
	}
}

// launch checks that there is one way to reach the server, and resolves
// protocol auto.
func (d *decoder) launch(g given, s *Server, e entry) {
	_, command := g["command"]
	_, url := g["url"]
	wanted := s.Protocol
	s.Protocol = "stdio"
	if url {
		s.Protocol = "http"
	}
	switch {
	case command && url:
		d.wrong(e.at, e.path, "the server has both command and url", "keep the one by which it is reached")
		return
	case !command && !url:
		d.wrong(e.at, e.path, "the server has neither command nor url", "add one of them")
		return
	case url && wanted == "sse":
		s.Protocol = "sse"
	case wanted != "auto" && wanted != s.Protocol:
		needs := map[string]string{"stdio": "command", "http": "url", "sse": "url"}[wanted]
		d.wrong(g["protocol"].Value.StartOffset, join(e.path, "protocol"), fmt.Sprintf("protocol %s needs %s", wanted, needs), "take protocol out: it follows from command or url")
	}
	s.TrySSE = url && wanted == "auto"
	if command {
		d.useless(g, e.path, "headers", len(s.Headers), "url")
		if s.AllowPrivate {
			d.useless(g, e.path, "allow_private", 1, "url")
		}
		return
	}
	d.useless(g, e.path, "args", len(s.Args), "command")
	d.useless(g, e.path, "env", len(s.Env), "command")
	d.useless(g, e.path, "working_dir", len(s.WorkingDir), "command")
}

// useless reports a key that says something, but nothing that this kind of
// server has a use for.
func (d *decoder) useless(g given, path, name string, length int, belongs string) {
	if length > 0 {
		d.wrong(g[name].Name.StartOffset, join(path, name), fmt.Sprintf("%s has no effect without %s", name, belongs), "take it out")
	}
}

// login checks what is said about the login to a server.
func (d *decoder) login(s *Server, e entry) {
	at := e.at
	if m := member(e.value, "oauth"); m != nil {
		at = m.Name.StartOffset
	}
	path := join(e.path, "oauth")
	switch {
	case s.Protocol == "stdio" && !reflect.DeepEqual(s.OAuth, OAuth{}):
		d.wrong(at, path, "oauth has no effect without url", "take it out")
	case s.OAuth.ClientSecret != "" && s.OAuth.ClientID == "":
		d.wrong(at, path, "there is a client_secret without a client_id", "add client_id, or take client_secret out")
	}
}

// tools checks the lists of tools against each other.
func (d *decoder) tools(g given, s *Server, path string) {
	_, allow := g["enabled_tools"]
	_, deny := g["disabled_tools"]
	switch {
	case allow && deny:
		d.wrong(g["disabled_tools"].Name.StartOffset, join(path, "disabled_tools"), "enabled_tools and disabled_tools exclude each other", "keep one of them")
	case allow && s.EnabledTools != nil && len(s.EnabledTools) == 0:
		d.wrong(g["enabled_tools"].Value.StartOffset, join(path, "enabled_tools"), "enabled_tools is empty", `take it out to allow every tool, or set "enabled": false to allow none`)
	}
	d.unprefixed(g, s.Name, path, "enabled_tools", s.EnabledTools)
	d.unprefixed(g, s.Name, path, "disabled_tools", s.DisabledTools)
	var overridden []string
	for _, o := range s.HintOverrides {
		overridden = append(overridden, o.Pattern)
	}
	d.unprefixed(g, s.Name, path, "hint_overrides", overridden)
	var judged []string
	for _, r := range s.Lanes {
		judged = append(judged, r.Pattern)
	}
	d.unprefixed(g, s.Name, path, "lanes", judged)
	var selected []string
	for _, r := range s.Selections {
		selected = append(selected, r.Pattern)
	}
	d.unprefixed(g, s.Name, path, "select", selected)
}

// unprefixed reports patterns for "server:tool": they would match nothing, and
// what was to be forbidden would be allowed.
func (d *decoder) unprefixed(g given, server, path, key string, patterns []string) {
	for _, p := range patterns {
		if rest, ok := strings.CutPrefix(p, server+":"); ok {
			d.wrong(g[key].Value.StartOffset, join(path, key), fmt.Sprintf("the pattern %s begins with the server's name", quote(p)), "write the tool's own name: "+quote(rest))
		}
	}
}
