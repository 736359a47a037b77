package config

import (
	"cmp"
	"strings"

	"github.com/tailscale/hujson"
)

// addWarning reports a key or value without effect, with its server.
func (d *decoder) addWarning(offset int, path, message, hint string) {
	if len(d.warnings.list) == maxWarnings {
		d.warnings.more++
		return
	}
	if d.serverName != "" {
		message = "server " + quoteClipped(d.serverName) + ": " + message
	}
	d.warnings.list = append(d.warnings.list, d.newMistake(offset, path, message, hint))
}

// warnOtherClientKey reports whether m is a key of another client, and warns of it. in is the path of the object that
// contains it.
func (d *decoder) warnOtherClientKey(m hujson.ObjectMember, in, path, name string) bool {
	object := "file"
	switch {
	case d.serverPath != "" && in == d.serverPath:
		object = "server"
	case d.serverPath != "" && strings.HasPrefix(in, joinPath(d.serverPath, "tools")):
		object = "tool"
	case in != "":
		return false
	}
	advice, ok := otherClientKeyAdvice(object, name, m.Value.Value.Kind())
	if ok {
		d.addWarning(m.Name.StartOffset, path, quoteClipped(name)+" is a key of other clients and has no effect here", cmp.Or(advice, "remove it"))
	}
	return ok
}

// warnForeignReferences warns of references in other programs' syntax.
func (d *decoder) warnForeignReferences(v hujson.Value, path, raw string) {
	told := map[string]bool{}
	for _, r := range FindForeignReferences(raw) {
		message, hint := r.Advice()
		if r.Kind == Input || told[message] { // input is reported as a mistake
			continue
		}
		told[message] = true
		d.addWarning(v.StartOffset, path, "in "+clipText(lastPathPart(path))+", "+message, hint)
	}
}
