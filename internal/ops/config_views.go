package ops

import (
	"encoding/json"
	"time"
)

// Config is the configuration file and its settings.
type Config struct {
	Path         string    `json:"path"`
	Text         string    `json:"text" doc:"The text of the file. Literal secrets are shown as ***masked:N***. Such a placeholder in a value for secrets is replaced by the secret again."`
	ETag         string    `json:"etag" doc:"The value for If-Match of a change: it identifies the bytes of the file."`
	InForceSince time.Time `json:"in_force_since" doc:"When the text came into force that is in force."`
	InForceETag  string    `json:"in_force_etag" doc:"The etag of the text in force: another one while the file is refused."`
	// InForce is what the daemon uses.
	InForce      json.RawMessage `json:"in_force" doc:"The configuration that MCPProxy uses, with defaults. Secrets are masked."`
	Error        string          `json:"error,omitempty" doc:"Why the current file was rejected; the previous configuration stays in force."`
	Mistakes     []Mistake       `json:"mistakes,omitempty"`
	NeedsRestart []string        `json:"needs_restart" doc:"Changed settings that take effect at the next start."`
	// Unconfirmed has the order of the file.
	Unconfirmed    []KeyDifference `json:"unconfirmed" doc:"Changes in the file that are not in force, because they grant more access and wait for confirmation. With presence, POST /config/confirm requires a signature. From is the value in force."`
	UnconfirmedWhy string          `json:"unconfirmed_why,omitempty" doc:"Why nothing counts that was confirmed."`
	Settings       []Setting       `json:"settings" doc:"All settings besides the servers, in the order of the reference."`
}

// KeyDifference is a key whose value differs.
type KeyDifference struct {
	Key  string          `json:"key" doc:"Such as tools_limit or mcpServers.github.args; mcpServers.github of a server that is added or removed."`
	From json.RawMessage `json:"from" doc:"Null where there is none. Secrets are masked."`
	To   json.RawMessage `json:"to"`
}

// Mistake is one mistake in a text. Line and Column refer to the text as it was shown or sent, with placeholders.
type Mistake struct {
	Line    int    `json:"line" doc:"From 1; 0 when the mistake has no place in the text."`
	Column  int    `json:"column" doc:"From 1, in characters."`
	Key     string `json:"key,omitempty" doc:"Such as mcpServers.github.args[0]."`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Setting is one setting.
type Setting struct {
	Key     string          `json:"key" doc:"Such as log.level."`
	Type    string          `json:"type" enum:"string,boolean,integer,duration,list"`
	Range   string          `json:"range,omitempty" doc:"What it may be, in words."`
	Doc     string          `json:"doc" doc:"What it is for, in Markdown."`
	Value   json.RawMessage `json:"value" doc:"What is in force, or waits for the restart."`
	Default json.RawMessage `json:"default"`
	Allowed []string        `json:"allowed,omitempty" doc:"The words that it may be."`
	Restart bool            `json:"restart,omitempty" doc:"A change waits for a restart."`
	Set     bool            `json:"set" doc:"Whether the file sets it."`
	Locked  bool            `json:"locked,omitempty" doc:"It can only be changed in the text of the file, or there has no effect, since a flag or a variable says it."`
}
