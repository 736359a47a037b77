package ops

import (
	"net/url"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

// Limits for a new server.
const (
	maxServerText  = 8 << 10  // bytes per text
	maxServerParts = 256      // number of arguments, variables or headers
	maxServer      = 64 << 10 // bytes of all texts together
)

// validateNewServer validates the name, launch and size of a new server. config.LiveConfig validates everything else
// when it writes the file.
func validateNewServer(s AddServerRequest) (config.ServerEdit, error) {
	if err := tool.CheckServerName(s.Name); err != nil {
		return config.ServerEdit{}, invalidServerParameterError("name", "The name of the server cannot be used: "+err.Error()+".")
	}
	if (s.URL == "") == (s.Command == "") {
		return config.ServerEdit{}, invalidServerParameterError("command", "A server has either a command or a url.")
	}
	if u, err := url.Parse(s.URL); s.URL != "" && !strings.Contains(s.URL, "${") && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return config.ServerEdit{}, invalidServerParameterError("url", "The url must begin with http:// or https:// and name a host.")
	}
	if exceedsSizeLimits(s) {
		return config.ServerEdit{}, invalidServerParameterError("args", "The server has too many texts, or a text that is too long.")
	}
	edit := config.ServerEdit{
		Launch: s.Launch, Quarantined: s.Quarantined, Trust: config.Trust(s.Trust),
	}
	return edit, edit.CheckValues()
}

// exceedsSizeLimits reports whether a new server exceeds a size limit.
func exceedsSizeLimits(s AddServerRequest) bool {
	texts := append([]string{s.Command, s.URL, s.WorkingDir, s.Trust}, s.Args...)
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for name, value := range m {
			texts = append(texts, name, value)
		}
	}
	size := 0
	for _, text := range texts {
		if size += len(text); size > maxServer || len(text) > maxServerText {
			return true
		}
	}
	return len(s.Args) > maxServerParts || len(s.Env) > maxServerParts || len(s.Headers) > maxServerParts
}

func invalidServerParameterError(parameter, message string) error {
	return problem.New(problem.InvalidParameter, message, "Change it and try again.").With("parameter", parameter)
}
