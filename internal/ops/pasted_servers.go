package ops

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

// maxPasted limits the size of a pasted text, in bytes.
const maxPasted = 256 << 10

// PastedText is a text with servers.
type PastedText struct {
	Text string `json:"text" required:"true" maxLength:"262144" doc:"The text with servers: a part of a client's file (JSON with or without comments, TOML or YAML), one command line, or a URL. At most 256 KiB."`
}

// Example returns an example for the OpenAPI document.
func (PastedText) Example() string { return `{"text": "npx -y @modelcontextprotocol/server-github"}` }

// Parsed contains the servers found in a text. None of them is added.
type Parsed struct {
	Format   clients.PastedFormat `json:"format" doc:"The detected format of the text."`
	Servers  []ParsedServer       `json:"servers"`
	Mistakes []ParseMistake       `json:"mistakes" doc:"Parts of the text that cannot be read, and servers that were left out because of a mistake."`
	Notes    []string             `json:"notes" doc:"Parts of the text that were left out on purpose."`
}

// ParseMistake is a mistake in a text. Line and Column count from 1. They are 0 if unknown.
type ParseMistake struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// ParsedServer is a server found in a text.
type ParsedServer struct {
	Name    string        `json:"name"`
	Add     AddedServer   `json:"add" doc:"The request body for POST /servers. It contains the secrets of the text."`
	Launch  LaunchView    `json:"launch" doc:"How the server is started or reached. Probable secrets are masked."`
	Exists  bool          `json:"exists" doc:"Whether a server with this name already exists."`
	Secrets []ParseSecret `json:"secrets" doc:"Secrets that should not be in the configuration file."`
	Notes   []string      `json:"notes" doc:"Differences from the text."`
}

// AddedServer is a server in the form of the body of POST /servers.
type AddedServer struct {
	Name string `json:"name"`
	config.Launch
	Trust       string `json:"trust,omitempty"`
	Quarantined bool   `json:"quarantined,omitempty"`
}

// ParseSecret is a value in a server's launch that looks like a credential.
type ParseSecret struct {
	Place      string `json:"place" enum:"env,headers,args,command,url" doc:"The field of 'add' that contains the secret."`
	Name       string `json:"name" doc:"Where the secret is in that field: the name in env or headers, or the index in args (from 0)."`
	Kind       string `json:"kind" doc:"The detected kind of secret, such as github-token."`
	Suggestion string `json:"suggestion" doc:"The suggested replacement of the whole value: a reference to an environment variable of MCPProxy."`
}

// parsePastedServers parses the servers in a pasted text. It leaves out MCPProxy itself, for which itself returns an
// error. It stores nothing.
func parsePastedServers(in PastedText, c *config.Config, itself func(config.Launch) error) (Parsed, error) {
	if len(in.Text) > maxPasted {
		return Parsed{}, problem.Newf(problem.TooLarge, "The text is larger than %d bytes.", maxPasted).
			WithHint("Paste only the part with the servers.").With("limit", maxPasted)
	}
	file, format, err := clients.ParsePasted([]byte(in.Text))
	out := Parsed{Format: format, Servers: []ParsedServer{}, Mistakes: []ParseMistake{}, Notes: []string{}}
	if err != nil {
		out.Mistakes = append(out.Mistakes, toParseMistake(problem.From(err)))
		return out, nil
	}
	for _, n := range file.Notes {
		out.Mistakes = append(out.Mistakes, ParseMistake{n.Line, n.Column, n.Message, n.Hint})
	}
	if file.OmittedNotes > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("There are %d more notes.", file.OmittedNotes))
	}
	for _, s := range file.Servers {
		if err := itself(s.Entry.Launch); err != nil {
			out.Notes = append(out.Notes, "Server '"+s.OriginalName+"' is left out: "+problem.From(err).Message)
			continue
		}
		out.Servers = append(out.Servers, toParsedServer(s, c))
	}
	return out, nil
}

// toParseMistake converts a problem. It moves the position from the message to the fields.
func toParseMistake(p *problem.Problem) ParseMistake {
	m := ParseMistake{Message: p.Message, Hint: p.Hint}
	m.Line, _ = p.Detail("line").(int)
	m.Column, _ = p.Detail("column").(int)
	m.Message = strings.TrimPrefix(m.Message, fmt.Sprintf("line %d, column %d: ", m.Line, m.Column))
	return m
}

func toParsedServer(s clients.ImportedServer, c *config.Config) ParsedServer {
	e := s.Entry
	shown := config.Server{Name: s.Name, Protocol: "stdio", Launch: e.Launch}
	if e.URL != "" {
		shown.Protocol = cmp.Or(e.Protocol, "http")
	}
	out := ParsedServer{
		Name: s.Name, Add: AddedServer{s.Name, e.Launch, string(e.Trust), e.Quarantined}, Launch: newLaunchView(shown.MaskedLaunch()),
		Exists:  slices.ContainsFunc(c.Servers, func(other config.Server) bool { return strings.EqualFold(other.Name, s.Name) }),
		Secrets: findParsedSecrets(s.Name, e.Launch), Notes: []string{},
	}
	for _, n := range s.Notes {
		out.Notes = append(out.Notes, noteText(n))
	}
	// A restriction that AddedServer cannot express requires a review of the server.
	narrow := func(there bool, note string) {
		if there {
			out.Add.Quarantined = true
			out.Notes = append(out.Notes, note)
		}
	}
	narrow(e.Enabled != nil && !*e.Enabled, "the server is disabled in the client: it is added for review and starts after you approve it")
	narrow(len(e.EnabledTools) > 0, "the client allows only some of the server's tools. Adding a server cannot set this. The server is added for review: before you approve it, set enabled_tools to "+formatJSONList(e.EnabledTools))
	narrow(len(e.DisabledTools) > 0, "the client denies some of the server's tools. Adding a server cannot set this. The server is added for review: before you approve it, set disabled_tools to "+formatJSONList(e.DisabledTools))
	if e.CallTimeout != "" {
		out.Notes = append(out.Notes, "call_timeout "+e.CallTimeout+" is not part of add: set it afterwards")
	}
	if e.Protocol == "sse" {
		out.Notes = append(out.Notes, "protocol sse is not part of add: set it in the file if the server does not answer without it")
	}
	return out
}

// formatJSONList formats names as a shortened JSON list.
func formatJSONList(names []string) string {
	raw, _ := json.Marshal(names) // strings can always be encoded
	return problem.ClipName(string(raw))
}

// findParsedSecrets returns the values in a launch that look like credentials, one per place.
func findParsedSecrets(server string, l config.Launch) []ParseSecret {
	found := FindCredentials(server, l)
	taken := map[string]int{}
	said := ReplaceCredentials(l, found, func(c Credential) string {
		name := c.Name
		if taken[name]++; taken[name] > 1 {
			name = fmt.Sprintf("%s_%d", name, taken[name])
		}
		return "${env:" + name + "}"
	})
	out := []ParseSecret{}
	for i, c := range found {
		if i > 0 && found[i-1].Place == c.Place {
			continue
		}
		place, name, _ := strings.Cut(c.Place, ".")
		out = append(out, ParseSecret{place, name, c.Kind, LaunchTextAt(said, c.Place)})
	}
	return out
}
