package config

// Mistake is one thing that is wrong with a configuration file. Line and
// Column count from 1; they are 0 when the mistake is not in the file.
type Mistake struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Parse decodes and checks a configuration file. lookup is the environment.
// The error is a *problem.Problem INVALID_CONFIG that names everything that is
// wrong; its detail "problems" is a []Mistake.
func Parse(data []byte, lookup func(name string) (string, bool)) (*Config, error) { panic("todo") }

// Default is the configuration of an empty file. DataDir is "~/.mcpproxy" as
// long as nobody said where the home directory is.
func Default() *Config { panic("todo") }

// Shown is c as it may be shown: references instead of their values, and the
// other values of env, headers and api_key masked.
func (c *Config) Shown() *Config { panic("todo") }

// JSONSchema is the JSON Schema of the file.
func JSONSchema() []byte { panic("todo") }

// Reference is the reference of the file in Markdown.
func Reference() []byte { panic("todo") }

// ResolvePath says where the file is: flag (--config), MCPPROXY_CONFIG, else
// ~/.mcpproxy/mcp_config.json. lookup nil means the environment of the process.
func ResolvePath(flag string, lookup func(name string) (string, bool)) (string, error) {
	panic("todo")
}

// ResolveDataDir says where the data is: flag (--data-dir),
// MCPPROXY_DATA_DIR, data_dir in the file at path (also when the rest of the
// file is wrong), else ~/.mcpproxy.
func ResolveDataDir(flag, path string, lookup func(name string) (string, bool)) (string, error) {
	panic("todo")
}
