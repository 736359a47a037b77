package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// Mode is how strictly a server is limited.
type Mode string

// The modes.
const (
	Off       Mode = "off"
	On        Mode = "on"        // reads the home folder, except secrets
	Strict    Mode = "strict"    // reads nothing of the user but the named paths
	Container Mode = "container" // runs in an image of docker or podman
)

// Modes returns the names of the modes.
func Modes() []string { return []string{string(Off), string(On), string(Strict), string(Container)} }

// Network is what a server can reach.
type Network string

// The values of Network.
const (
	NoNetwork  Network = "none"
	AllNetwork Network = "all"
)

// Rules is the sandbox of a server. An empty Mode is Off, and an empty Network is NoNetwork.
type Rules struct {
	Mode       Mode     `json:"mode"`
	Read       []string `json:"read,omitempty"`
	Write      []string `json:"write,omitempty"`
	Network    Network  `json:"network,omitempty"`
	Image      string   `json:"image,omitempty"`
	BestEffort bool     `json:"best_effort,omitempty"`
}

// IsOn reports whether the server is limited at all.
func (r Rules) IsOn() bool { return r.Mode != "" && r.Mode != Off }

// HasNetwork reports whether the server can reach a network. It can if it has no sandbox.
func (r Rules) HasNetwork() bool { return !r.IsOn() || r.Network == AllNetwork }

// ProvesReadOnly reports whether the rules leave the server nothing to change: it can write only to its private
// temporary folder, and it reaches no network. Rules with best_effort prove nothing.
func (r Rules) ProvesReadOnly() bool {
	return r.IsOn() && len(r.Write) == 0 && !r.HasNetwork() && !r.BestEffort
}

// ProvesNoNetwork reports whether the rules keep the server from all networks.
func (r Rules) ProvesNoNetwork() bool { return r.IsOn() && !r.HasNetwork() && !r.BestEffort }

// isWithin reports whether strict rules with absolute paths allow a server nothing more than current, its sandbox. A path
// that the running server may replace by a symbolic link is not within it.
func (r Rules) isWithin(current Rules, home string) bool {
	if !current.IsOn() {
		return true
	}
	if current.Mode == Container || r.Mode != Strict || r.HasNetwork() && !current.HasNetwork() {
		return false
	}
	current = current.WithHome(home)
	readable := slices.Concat(current.Read, current.Write)
	if real, err := filepath.EvalSymlinks(home); current.Mode == On && err == nil && real != "/" {
		readable = append(readable, real)
	}
	replaceable := func(path string) bool {
		return strings.Contains(path, "/"+tmpPrefix) || slices.ContainsFunc(current.Write, func(w string) bool {
			real, err := filepath.EvalSymlinks(w)
			return path != w && isWithin(path, w) || err == nil && path != real && isWithin(path, real)
		})
	}
	isAllowed := func(path string, by []string, below bool) bool {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || replaceable(path) || replaceable(real) {
			return false
		}
		return slices.Contains(by, path) || below && real == path && slices.ContainsFunc(by, func(p string) bool {
			p, err := filepath.EvalSymlinks(p)
			return err == nil && isWithin(path, p)
		})
	}
	return !slices.ContainsFunc(r.Read, func(p string) bool { return !isAllowed(p, readable, true) }) &&
		!slices.ContainsFunc(r.Write, func(p string) bool { return !isAllowed(p, current.Write, false) })
}

// Equal reports whether r and o are the same rules.
func (r Rules) Equal(o Rules) bool {
	return r.Mode == o.Mode && slices.Equal(r.Read, o.Read) && slices.Equal(r.Write, o.Write) && r.Network == o.Network && r.Image == o.Image && r.BestEffort == o.BestEffort
}

// Text describes the rules for a user, such as "may read ~/notes, write nothing, no network"; "" without a sandbox.
func (r Rules) Text() string {
	if !r.IsOn() {
		return ""
	}
	read := append([]string{}, r.Read...)
	switch {
	case r.Mode == On:
		read = append([]string{"the home folder except keys, tokens and browser profiles"}, read...)
	case len(read) == 0:
		read = []string{"only its own program"}
	}
	text := "may read " + joinWords(read)
	if r.Mode == Container {
		text = "in a container of " + r.Image + ", " + text
	}
	if len(r.Write) > 0 {
		text += ", read and write " + joinWords(r.Write)
	} else {
		text += ", write nothing"
	}
	text += map[bool]string{true: ", any network", false: ", no network"}[r.HasNetwork()]
	if r.BestEffort {
		text += "; as far as this machine can enforce it"
	}
	return text
}

// joinWords joins texts with commas and a final "and".
func joinWords(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}

// WithHome returns the rules with ~ replaced by the home folder.
func (r Rules) WithHome(home string) Rules {
	expand := func(paths []string) (all []string) {
		for _, p := range paths {
			if rest, ok := strings.CutPrefix(p, "~"); ok && home != "" && (rest == "" || rest[0] == '/') {
				p = filepath.Join(home, rest)
			}
			all = append(all, filepath.Clean(p))
		}
		return all
	}
	r.Read, r.Write = expand(r.Read), expand(r.Write)
	return r
}
