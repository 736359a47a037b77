package ops

import (
	"encoding/json"
	"time"
)

// Config is the configuration file and its settings.
type Config struct {
	Path         string    `json:"path"`
	Text         string    `json:"text" doc:"The file. Literal secrets stand as ***masked:N***, and are put back where a placeholder comes back in a place for secrets."`
	ETag         string    `json:"etag" doc:"What If-Match of a change has to name: it identifies the bytes of the file."`
	InForceSince time.Time `json:"in_force_since" doc:"When the text came into force that is in force."`
	InForceETag  string    `json:"in_force_etag" doc:"The etag of the text in force: another one while the file is refused."`
	// InForce is what the daemon uses.
	InForce      json.RawMessage `json:"in_force" doc:"The configuration that MCPProxy uses, with defaults. Secrets are masked."`
	Error        string          `json:"error,omitempty" doc:"Why the file as it is now is refused; what was in force stays."`
	Mistakes     []Mistake       `json:"mistakes,omitempty"`
	NeedsRestart []string        `json:"needs_restart" doc:"Changed settings that take effect at the next start."`
	// Unconfirmed has the order of the file.
	Unconfirmed    []KeyDifference `json:"unconfirmed" doc:"What of the file is not in force, since it widens what a person has confirmed: with presence, POST /config/confirm needs a person. From is what is in force."`
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
	Set     bool            `json:"set" doc:"It stands in the file."`
	Locked  bool            `json:"locked,omitempty" doc:"It can only be changed in the text of the file, or there has no effect, since a flag or a variable says it."`
}
