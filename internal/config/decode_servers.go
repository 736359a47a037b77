package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/upstream/sandbox"
)

// serverEntry is a server in the file.
type serverEntry struct {
	value  hujson.Value
	path   string
	name   string // empty for a list entry without a name
	at     int    // offset of the name, or of the server if it has no name
	inList bool
}

// decodeServers decodes mcpServers in either form.
func (d *decoder) decodeServers(v hujson.Value, path string) (any, any) {
	resolved, shown := []Server{}, []Server{}
	taken := map[string]string{} // key: confusable form of the name
	for e := range d.eachServerEntry(v, path) {
		if e.name != "" && !d.checkNameUnique(taken, e) {
			continue
		}
		r, s := d.decodeServer(e)
		launch := newLaunchView(s)
		fingerprint := launch.fingerprint()
		r.launch, r.launchFingerprint = &launch, &fingerprint
		written := s
		if r.TrySSE {
			written.Protocol = "auto"
		}
		s = maskServer(s)
		r.asWritten, r.shown = &written, &s
		resolved, shown = append(resolved, r), append(shown, s)
	}
	return resolved, shown
}

// eachServerEntry iterates over mcpServers in either form.
func (d *decoder) eachServerEntry(v hujson.Value, path string) func(yield func(serverEntry) bool) {
	return func(yield func(serverEntry) bool) {
		switch value := v.Value.(type) {
		case *hujson.Object:
			for m, name := range d.eachUniqueMember(value, path) {
				e := serverEntry{m.Value, joinPath(path, name), name, m.Name.StartOffset, false}
				if err := tool.CheckServerName(name); err != nil {
					d.addMistake(e.at, e.path, err.Error(), "the name is used in tool names and file names")
				}
				if !yield(e) {
					return
				}
			}
		case *hujson.Array:
			for i, element := range value.Elements {
				name, at := listEntryName(element)
				if !yield(serverEntry{element, fmt.Sprintf("%s[%d]", path, i), name, at, true}) {
					return
				}
			}
		default:
			d.reportWrongType(v, path, "an object (name → server) or a list of servers")
		}
	}
}

// listEntryName returns the name of a server in the list form, and its offset. The name is
// checked with the other keys.
func listEntryName(v hujson.Value) (string, int) {
	if m := findMember(v, "name"); m != nil {
		if l, ok := m.Value.Value.(hujson.Literal); ok && l.Kind() == '"' {
			return l.String(), m.Value.StartOffset
		}
	}
	return "", v.StartOffset
}

// checkNameUnique reports whether no other server has the name or a confusable one.
func (d *decoder) checkNameUnique(taken map[string]string, e serverEntry) bool {
	name := e.name
	looks := ConfusableSkeletons(name)
	for _, look := range looks {
		other, found := taken[look]
		switch {
		case found && other == name:
			d.addMistake(e.at, e.path, fmt.Sprintf("there are two servers with the name %s", quoteClipped(name)), "give one of them another name")
			return false
		case found:
			d.addMistake(e.at, e.path, fmt.Sprintf("the name %s looks like %s", quoteClipped(name), quoteClipped(other)), "names must differ by more than case and similar characters")
			return false
		}
	}
	for _, look := range looks {
		taken[look] = name
	}
	return true
}

// ConfusableSkeletons returns the forms of a name that are compared: two servers must not have a form in common.
func ConfusableSkeletons(name string) []string {
	return []string{strings.ToLower(name), lookAlikes.Replace(name)}
}

var lookAlikes = strings.NewReplacer("I", "l", "1", "l", "0", "o", "O", "o", "rn", "m", "vv", "w")

// decodeServer decodes one server.
func (d *decoder) decodeServer(e serverEntry) (resolved, shown Server) {
	resolved = d.newServer
	resolved.Name = e.name
	shown = resolved
	if _, ok := e.value.Value.(*hujson.Object); !ok {
		d.reportWrongType(e.value, e.path, "an object")
		return resolved, shown
	}
	d.inDisabledServer, d.serverName, d.serverPath = d.keepReferences || isDisabledEntry(e.value), e.name, e.path
	d.inServer, d.unsetVariables = true, nil
	g := d.decodeObject(e.value, e.path, resolved.keys(), shown.keys())
	d.inDisabledServer, d.serverName, d.serverPath, d.inServer = false, "", "", false
	resolved.unsetVariables = d.unsetVariables
	d.checkServerHasOneName(g, e)
	d.checkLaunchAndResolveProtocol(g, &resolved, e)
	d.checkOAuth(&resolved, e)
	d.checkSandbox(&resolved, e)
	d.checkToolLists(g, &resolved, e.path)
	shown.Protocol = resolved.Protocol
	return resolved, shown
}

// isDisabledEntry reports whether the server is disabled. It reads only that member, before the others are decoded.
func isDisabledEntry(v hujson.Value) bool {
	off := func(key string, value hujson.Kind) bool {
		m := findMember(v, key)
		return m != nil && m.Value.Value.Kind() == value
	}
	return off("enabled", 'f') || off("disabled", 't')
}

// findMember returns a member of an object, or nil.
func findMember(v hujson.Value, name string) *hujson.ObjectMember {
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

// checkServerHasOneName checks that the server has one name: the key in the object form, the member
// "name" in the list form.
func (d *decoder) checkServerHasOneName(g objectMembers, e serverEntry) {
	_, found := g["name"]
	switch {
	case e.inList && !found:
		d.addMistake(e.at, e.path, "the server has no name", `add "name", or write mcpServers as an object`)
	case !e.inList && found:
		if other, at := listEntryName(e.value); other != e.name {
			d.addMistake(at, joinPath(e.path, "name"), fmt.Sprintf("the server already has the name %s", quoteClipped(e.name)), "remove name")
		}
	}
}

// checkLaunchAndResolveProtocol checks that there is one way to reach the server, and resolves protocol
// auto.
func (d *decoder) checkLaunchAndResolveProtocol(g objectMembers, s *Server, e serverEntry) {
	_, command := g["command"]
	_, url := g["url"]
	wanted := s.Protocol
	s.Protocol = "stdio"
	if url {
		s.Protocol = "http"
	}
	switch {
	case command && url:
		d.addMistake(e.at, e.path, "the server has both command and url", "keep one of them")
		return
	case !command && !url:
		d.addMistake(e.at, e.path, "the server has neither command nor url", "add one of them")
		return
	case url && wanted == "sse":
		s.Protocol = "sse"
	case wanted != "auto" && wanted != s.Protocol:
		needs := map[string]string{"stdio": "command", "http": "url", "sse": "url"}[wanted]
		d.addMistake(g["protocol"].Value.StartOffset, joinPath(e.path, "protocol"), fmt.Sprintf("protocol %s needs %s", wanted, needs), "remove protocol: MCPProxy chooses it from command or url")
	}
	s.TrySSE = url && wanted == "auto"
	if command {
		d.reportUnusedKey(g, e.path, "headers", len(s.Headers), "url")
		if s.AllowPrivate {
			d.reportUnusedKey(g, e.path, "allow_private", 1, "url")
		}
		return
	}
	d.reportUnusedKey(g, e.path, "args", len(s.Args), "command")
	d.reportUnusedKey(g, e.path, "env", len(s.Env), "command")
	d.reportUnusedKey(g, e.path, "working_dir", len(s.WorkingDir), "command")
}

// reportUnusedKey reports a key that has no effect for this kind of server.
func (d *decoder) reportUnusedKey(g objectMembers, path, name string, length int, belongs string) {
	if length > 0 {
		d.addMistake(g[name].Name.StartOffset, joinPath(path, name), fmt.Sprintf("%s has no effect without %s", name, belongs), "remove it")
	}
}

// checkOAuth checks the OAuth keys.
func (d *decoder) checkOAuth(s *Server, e serverEntry) {
	at := e.at
	if m := findMember(e.value, "oauth"); m != nil {
		at = m.Name.StartOffset
	}
	path := joinPath(e.path, "oauth")
	switch {
	case s.Protocol == "stdio" && !reflect.DeepEqual(s.OAuth, OAuth{}):
		d.addMistake(at, path, "oauth has no effect without url", "remove it")
	case s.OAuth.ClientSecret != "" && s.OAuth.ClientID == "":
		d.addMistake(at, path, "client_secret requires client_id", "add client_id, or remove client_secret")
	}
}

// checkSandbox checks the keys of the sandbox together.
func (d *decoder) checkSandbox(s *Server, e serverEntry) {
	at := e.at
	for _, name := range []string{"trust_sandbox", "sandbox"} {
		if m := findMember(e.value, name); m != nil {
			at = m.Name.StartOffset
		}
	}
	path, r := joinPath(e.path, "sandbox"), s.Sandbox
	switch {
	case s.Protocol != "stdio" && (r.IsOn() || s.TrustSandbox):
		d.addMistake(at, path, "sandbox has no effect without command", "remove it")
	case r.Mode == sandbox.Container && r.Image == "":
		d.addMistake(at, path, `sandbox.mode "container" requires image`, "add image")
	case r.Mode != sandbox.Container && r.Image != "":
		d.addMistake(at, path, `sandbox.image has no effect without mode "container"`, "remove it, or set mode")
	case !r.IsOn() && (len(r.Read) > 0 || len(r.Write) > 0 || r.Network == sandbox.AllNetwork || r.BestEffort):
		d.addMistake(at, path, "sandbox has no effect without mode", `set mode to "on", "strict" or "container"`)
	case s.TrustSandbox && !r.IsOn():
		d.addMistake(at, joinPath(e.path, "trust_sandbox"), "trust_sandbox has no effect without sandbox", "add sandbox, or remove trust_sandbox")
	}
}

// checkToolLists checks that only one tool list is set.
func (d *decoder) checkToolLists(g objectMembers, s *Server, path string) {
	_, allow := g["enabled_tools"]
	_, deny := g["disabled_tools"]
	switch {
	case allow && deny:
		d.addMistake(g["disabled_tools"].Name.StartOffset, joinPath(path, "disabled_tools"), "enabled_tools and disabled_tools cannot be combined", "keep one of them")
	case allow && s.EnabledTools != nil && len(s.EnabledTools) == 0:
		d.addMistake(g["enabled_tools"].Value.StartOffset, joinPath(path, "enabled_tools"), "enabled_tools is empty", `remove it to allow every tool, or set "enabled": false to allow none`)
	}
	d.reportServerPrefix(g, s.Name, path, "enabled_tools", s.EnabledTools)
	d.reportServerPrefix(g, s.Name, path, "disabled_tools", s.DisabledTools)
	d.reportServerPrefix(g, s.Name, path, "hint_overrides", entryNames(s.HintOverrides))
	d.reportServerPrefix(g, s.Name, path, "lanes", entryNames(s.Lanes))
	d.reportServerPrefix(g, s.Name, path, "select", entryNames(s.Selections))
	d.reportServerPrefix(g, s.Name, path, "tools", entryNames(s.ToolSettings))
}

// reportServerPrefix reports patterns with a "server:" prefix. Such a pattern would match nothing, so a tool that it
// is meant to deny would be allowed.
func (d *decoder) reportServerPrefix(g objectMembers, server, path, key string, patterns []string) {
	for _, p := range patterns {
		if rest, ok := strings.CutPrefix(p, server+":"); ok {
			d.addMistake(g[key].Value.StartOffset, joinPath(path, key), fmt.Sprintf("the pattern %s begins with the server's name", quoteClipped(p)), "write the tool's own name: "+quoteClipped(rest))
		}
	}
}
