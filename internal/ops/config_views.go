package ops

import (
	"encoding/json"
	"time"
)

// Config is the configuration file and its settings.
type Config struct {
	Path         string    `json:"path"`
	Text         string    `json:"text" doc:"The text of the file. Each literal secret is replaced by the placeholder ***masked:N***. When a text with placeholders is saved, the secrets are restored."`
	ETag         string    `json:"etag" doc:"The etag of the file, for the If-Match header of a change. It identifies the bytes of the file."`
	InForceSince time.Time `json:"in_force_since" doc:"The time at which the current configuration was applied."`
	InForceETag  string    `json:"in_force_etag" doc:"The etag of the current configuration. It differs from etag while the file is rejected."`
	// InForce is the current configuration of the daemon.
	InForce      json.RawMessage `json:"in_force" doc:"The current configuration of the daemon, including default values. Secrets are masked."`
	Error        string          `json:"error,omitempty" doc:"Why the file was rejected; the previous configuration stays active. Absent if the file is valid."`
	Mistakes     []Mistake       `json:"mistakes,omitempty"`
	NeedsRestart []string        `json:"needs_restart" doc:"Changed settings that take effect at the next start."`
	// Unconfirmed is in the order of the file.
	Unconfirmed    []KeyDifference `json:"unconfirmed" doc:"Changes in the file that are not applied, because they grant more access and wait for confirmation with POST /config/confirm. With presence, the confirmation requires a signature. The member 'from' has the active value."`
	UnconfirmedWhy string          `json:"unconfirmed_why,omitempty" doc:"Why earlier confirmations are not valid. Absent if they are."`
	Settings       []Setting       `json:"settings" doc:"All settings except the servers, in the order of the reference."`
}

// KeyDifference is a key with two different values.
type KeyDifference struct {
	Key  string          `json:"key" doc:"The key, such as tools_limit or mcpServers.github.args. For a server that is added or removed: mcpServers.github."`
	From json.RawMessage `json:"from" doc:"The old value. Null if there was none. Secrets are masked."`
	To   json.RawMessage `json:"to"`
}

// Mistake is one mistake in a text. Line and Column refer to the text with placeholders, as it was shown or sent.
type Mistake struct {
	Line    int    `json:"line" doc:"The line number, from 1. 0 if the mistake has no position in the text."`
	Column  int    `json:"column" doc:"The column in characters, from 1."`
	Key     string `json:"key,omitempty" doc:"The key, such as mcpServers.github.args[0]. Absent if unknown."`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Setting is one setting of the configuration.
type Setting struct {
	Key     string          `json:"key" doc:"The key, such as log.level."`
	Type    string          `json:"type" enum:"string,boolean,integer,duration,list"`
	Range   string          `json:"range,omitempty" doc:"The allowed values, in words. Absent if there is no limit."`
	Doc     string          `json:"doc" doc:"The description, in Markdown."`
	Value   json.RawMessage `json:"value" doc:"The active value, or the changed value that takes effect at the next start."`
	Default json.RawMessage `json:"default"`
	Allowed []string        `json:"allowed,omitempty" doc:"The allowed values. Absent if the values are not a fixed list."`
	Restart bool            `json:"restart,omitempty" doc:"Whether a change of the setting takes effect at the next start."`
	Set     bool            `json:"set" doc:"Whether the file sets it."`
	Locked  bool            `json:"locked,omitempty" doc:"Whether PATCH /config rejects changes of the setting: it can only be edited in the text of the file, or a flag or environment variable overrides it."`
}
