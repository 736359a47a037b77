package config

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"mcpproxy/internal/tool"
)

// Launch is how a server is launched or reached: what a person approves before
// anything of it is started or contacted. Of the environment and the headers
// it has the names; values may be secrets, and change.
type Launch struct {
	Protocol   string   `json:"protocol"`
	Command    string   `json:"command"`
	Args       []string `json:"args"`
	Env        []string `json:"env"`
	WorkingDir string   `json:"working_dir"`
	URL        string   `json:"url"`
	Headers    []string `json:"headers"`
}

func launchOf(s Server) Launch {
	return Launch{
		Protocol: s.Protocol, Command: s.Command, Args: append([]string{}, s.Args...), WorkingDir: s.WorkingDir, URL: s.URL,
		Env: slices.Sorted(maps.Keys(s.Env)), Headers: slices.Sorted(maps.Keys(s.Headers)),
	}
}

// Launch is how s is launched, as it may be shown.
func (s Server) Launch() Launch { return launchOf(s.Shown()) }

// ExactLaunch is how s is launched as the file says it: with the references, but
// with nothing masked. It is for the person who decides about the launch, since
// a command can be made to look like a secret.
func (s Server) ExactLaunch() Launch {
	if s.launch != nil {
		return *s.launch
	}
	return launchOf(s)
}

// LaunchFingerprint identifies how s is launched as the file says it: with the
// references, not with what they stand for, and with what is masked when it is
// shown.
func (s Server) LaunchFingerprint() tool.Fingerprint {
	if s.launchFingerprint != nil {
		return *s.launchFingerprint
	}
	return launchOf(s).fingerprint()
}

func (l Launch) fingerprint() tool.Fingerprint {
	text, err := json.Marshal(l)
	if err != nil {
		panic("strings always encode: " + err.Error())
	}
	return sha256.Sum256(append([]byte("mcpproxy launch "), text...))
}
