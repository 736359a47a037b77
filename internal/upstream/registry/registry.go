// Package registry finds servers in MCP registries (API v0.1) and turns their entries into launches.
//
// Files:
//   - registry.go: Entry, what a registry says about one version of a server, and its limits
//   - client.go: Client asks a registry, and keeps its answers on disk
//   - options.go: Option, one way to start or reach the server of an entry, and what it asks for
//   - launch.go: the commands of packages and the addresses of remote servers
//
// Guarantees:
//   - Everything from a registry is limited in size and number. An entry that exceeds a limit or has a wrong type is
//     unreadable, and the others stay readable.
//   - A launch is built from a package name and an exact version, or from an https URL of a public host. Nothing of an
//     entry reaches a shell, a flag of npx, uvx or docker that grants more access, or a reference such as ${env:NAME}.
//   - It starts nothing, and sends requests only to the registry.
//
// Texts of an entry are untrusted. The caller scans them, and cleans them for display.
package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// Official is the address of the official MCP registry.
const Official = "https://registry.modelcontextprotocol.io"

// Limits of an entry. Lengths are in bytes.
const (
	maxEntry   = 128 << 10
	maxName    = 200
	maxVersion = 255
	maxText    = 4096
	maxWays    = 32   // packages and remotes
	maxTokens  = 5000 // names, values and brackets
	maxLevels  = 16
)

// The statuses of an entry. Registries without them report none.
const (
	Deprecated = "deprecated"
	Deleted    = "deleted"
)

// Entry is one version of a server in a registry.
type Entry struct {
	Name, Title, Description, Version string
	WebsiteURL, RepositoryURL         string
	Packages                          []Package
	Remotes                           []Transport
	Status, StatusMessage             string
	Published, Updated                time.Time

	raw json.RawMessage
}

// Package is a package that a runner can start.
type Package struct {
	RegistryType         string      `json:"registryType"`
	RegistryBaseURL      string      `json:"registryBaseUrl"`
	Identifier           string      `json:"identifier"`
	Version              string      `json:"version"`
	FileSHA256           string      `json:"fileSha256"`
	RuntimeHint          string      `json:"runtimeHint"`
	Transport            Transport   `json:"transport"`
	RuntimeArguments     []Parameter `json:"runtimeArguments"`
	PackageArguments     []Parameter `json:"packageArguments"`
	EnvironmentVariables []Parameter `json:"environmentVariables"`
}

// Transport is how a server is reached.
type Transport struct {
	Type      string               `json:"type"`
	URL       string               `json:"url"`
	Headers   []Parameter          `json:"headers"`
	Variables map[string]Parameter `json:"variables"`
}

// Parameter is an argument, an environment variable, a header or a variable of a template.
type Parameter struct {
	Type        string               `json:"type"` // named or positional; of arguments
	Name        string               `json:"name"`
	ValueHint   string               `json:"valueHint"`
	IsRepeated  bool                 `json:"isRepeated"`
	Description string               `json:"description"`
	IsRequired  bool                 `json:"isRequired"`
	IsSecret    bool                 `json:"isSecret"`
	Format      string               `json:"format"`
	Value       string               `json:"value"`
	Default     string               `json:"default"`
	Choices     []string             `json:"choices"`
	Variables   map[string]Parameter `json:"variables"`
}

var entryName = regexp.MustCompile(`^[A-Za-z0-9.-]*[A-Za-z0-9-][A-Za-z0-9.-]*/[A-Za-z0-9._-]*[A-Za-z0-9-][A-Za-z0-9._-]*$`)

// InputError is the error about a query, a name or a version that a registry is not asked for.
type InputError string

func (e InputError) Error() string { return string(e) }

// CheckName returns an error unless the name is one of an entry, such as io.github.user/weather.
func CheckName(name string) error {
	if len(name) > maxName || !entryName.MatchString(name) {
		return InputError("a name in a registry has the form NAMESPACE/NAME, such as io.github.user/weather, with letters, digits, dots, dashes and underscores")
	}
	return nil
}

// parseEntry parses an entry of an answer. The error contains no text of the entry.
func parseEntry(raw json.RawMessage) (*Entry, error) {
	if err := checkLimits(raw); err != nil {
		return nil, err
	}
	var wire struct {
		Server struct {
			Entry
			Repository struct {
				URL string `json:"url"`
			} `json:"repository"`
		} `json:"server"`
		Meta struct {
			Official struct {
				Status        string    `json:"status"`
				StatusMessage string    `json:"statusMessage"`
				PublishedAt   time.Time `json:"publishedAt"`
				UpdatedAt     time.Time `json:"updatedAt"`
			} `json:"io.modelcontextprotocol.registry/official"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, errors.New("a value has a wrong type")
	}
	e, said := wire.Server.Entry, wire.Meta.Official
	e.RepositoryURL, e.raw = wire.Server.Repository.URL, raw
	e.Status, e.StatusMessage, e.Published, e.Updated = said.Status, said.StatusMessage, said.PublishedAt, said.UpdatedAt
	switch {
	case CheckName(e.Name) != nil:
		return nil, errors.New("its name is not allowed")
	case e.Version == "" || len(e.Version) > maxVersion || !isPlain(e.Version):
		return nil, errors.New("its version is not allowed")
	case len(e.Packages)+len(e.Remotes) > maxWays:
		return nil, fmt.Errorf("it has more than %d packages and remotes", maxWays)
	}
	return &e, nil
}

// checkLimits returns an error if the JSON of an entry exceeds a limit.
func checkLimits(raw json.RawMessage) error {
	if len(raw) > maxEntry {
		return fmt.Errorf("it is larger than %d bytes", maxEntry)
	}
	decoder, tokens := json.NewDecoder(bytes.NewReader(raw)), 0
	for level := 0; ; tokens++ {
		t, err := decoder.Token()
		switch v := t.(type) {
		case json.Delim:
			level += map[json.Delim]int{'{': 1, '[': 1, '}': -1, ']': -1}[v]
		case string:
			if len(v) > maxText {
				return fmt.Errorf("it has a text that is longer than %d bytes", maxText)
			}
		}
		switch {
		case err != nil: // the end, or a mistake that the next step reports
			return nil
		case level > maxLevels || tokens > maxTokens:
			return fmt.Errorf("it has more than %d values or %d levels", maxTokens, maxLevels)
		}
	}
}

// isPlain reports whether a text has only visible characters and spaces.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Clean returns a text for display, without control characters and invisible ones.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, text)
}

// Texts returns the texts of the entry that users read, one a line, for the scanner.
func (e *Entry) Texts() string {
	all := []string{e.Title, e.Description, e.StatusMessage}
	for _, o := range e.rawOptions() {
		for _, in := range o.Inputs {
			all = append(all, in.Description)
		}
	}
	return strings.Join(all, "\n")
}
