package ops

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
)

// ConfigOperations implements the operations on the configuration file.
type ConfigOperations struct {
	live    *config.LiveConfig
	gateway *Gateway
	dataDir string
	masker  secretMasker
	history *versionStore
}

// NewConfigOperations returns a ConfigOperations. It adds the current text to the history in the data directory, unless
// it is the newest version in the history. The key for placeholders is derived from apiKey.
func NewConfigOperations(live *config.LiveConfig, g *Gateway, dataDir, apiKey string) *ConfigOperations {
	key := sha256.Sum256([]byte("placeholders of the configuration\n" + apiKey))
	s := &ConfigOperations{live, g, dataDir, secretMasker{key[:]}, newVersionStore(filepath.Join(dataDir, "config-history"), g.Logger)}
	inForce := live.AppliedText()
	if newest, text, ok := s.history.newestVersion(); ok {
		if newest.ETag == inForce.ETag() {
			return s
		}
		inForce.Keys = live.ChangedKeys(text, inForce.Data)
	}
	s.history.addVersion(inForce)
	return s
}

// AddToHistory adds a text that was applied to the history. See config.Options.
func (s *ConfigOperations) AddToHistory(f config.AppliedText) { s.history.addVersion(f) }

// Config returns the configuration file.
func (s *ConfigOperations) Config(context.Context, Caller, Nothing) (Config, error) {
	text, err := s.live.ReadFile()
	inForce := s.live.AppliedText()
	c := Config{Path: s.live.Path(), ETag: config.ETag(text), InForceSince: inForce.Since, InForceETag: inForce.ETag(), NeedsRestart: s.live.NeedsRestart()}
	if newest, _, ok := s.history.newestVersion(); ok && newest.ETag == c.InForceETag {
		c.InForceSince = newest.At
	}
	used, encodeErr := wirejson.MarshalWithoutHTMLEscape(s.live.Current())
	if encodeErr != nil {
		return c, fmt.Errorf("encode the configuration: %w", encodeErr)
	}
	c.InForce = redact.JSON(used)
	shown := s.masker.maskText(text, inForce.Data)
	c.Text = shown.text
	if text == nil {
		c.Text = "{}\n"
	}
	waits := s.live.Unconfirmed()
	c.Unconfirmed, c.UnconfirmedWhy = s.maskedDifferences(shown, waits.Differences), waits.Why
	c.Settings = s.settingViews(text)
	if err == nil && c.ETag != c.InForceETag && text != nil {
		_, a := s.live.CheckText(text)
		err, c.Mistakes = a.Err, shown.toMaskedMistakes(a.Mistakes)
	}
	if err == nil && c.ETag != c.InForceETag {
		err = s.live.LastError()
	}
	if err != nil {
		c.Error = s.toMaskedProblem(err, c.Mistakes, shown).Message
	}
	return c, nil
}

// settingViews returns all settings with their values. text is the content of the file.
func (s *ConfigOperations) settingViews(text []byte) []Setting {
	return mapSlice(config.ListSettings(s.live.Current(), text), func(one config.Setting) Setting {
		return Setting{one.Key, one.Type, one.Range, one.Doc, redact.JSON(one.Value), one.Default, one.Allowed, one.Restart, one.Set,
			one.Secret || one.Key == "data_dir" || s.live.IsOverridden(one.Key)}
	})
}

// toMaskedProblem converts an error about a text. It converts the positions of mistakes to positions in the masked text
// and removes secrets.
func (s *ConfigOperations) toMaskedProblem(err error, mistakes []Mistake, of maskedConfig) *problem.Problem {
	p := problem.From(err)
	if p.Code == problem.PresenceRequired {
		return p // it contains the claims to sign, which have no secrets
	}
	if len(mistakes) == 0 {
		out := problem.New(p.Code, of.redactText(p.Message), of.redactText(p.Hint)).Because(err)
		if etag, ok := p.Detail("etag").(string); ok {
			out.With("etag", etag)
		}
		return out
	}
	lines := mapSlice(mistakes, func(m Mistake) config.Mistake { return config.Mistake(m) })
	whole := config.NewMistakesError(filepath.Base(s.live.Path()), lines)
	return problem.New(p.Code, whole.Message, p.Hint).With("mistakes", mistakes)
}

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
	Path    string `json:"key,omitempty" doc:"The key, such as mcpServers.github.args[0]. Absent if unknown."`
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

// IfMatchPrecondition identifies the version of the file on which a change is based.
type IfMatchPrecondition struct {
	IfMatch string `header:"If-Match" required:"true" doc:"The etag of the file on which the change is based, from GET /config."`
}

// etag returns the ETag without quotes.
func (m IfMatchPrecondition) etag() string {
	return strings.Trim(strings.TrimPrefix(m.IfMatch, "W/"), `"`)
}

// SettingChanges is a request to change single settings.
type SettingChanges struct {
	IfMatchPrecondition
	Set map[string]json.RawMessage `json:"set" required:"true" doc:"The new value of each setting, by key. Null removes the key from the file."`
}

// Example returns an example for the OpenAPI document.
func (SettingChanges) Example() string { return `{"set": {"tools_limit": 15}}` }

// ConfigReplacement is a request to replace the whole file.
type ConfigReplacement struct {
	IfMatchPrecondition
	Text string `json:"text" required:"true" doc:"The text of the file. It may contain the placeholders of secrets that GET /config shows."`
}

// ValidateRequest is a request to validate a text, optionally with changes of settings as in SettingChanges.
type ValidateRequest struct {
	IfMatch string                     `header:"If-Match" doc:"The etag of the file on which the text is based. Default: the current file."`
	Text    string                     `json:"text" required:"true" doc:"The text of the file. It may contain the placeholders of secrets that GET /config shows."`
	Set     map[string]json.RawMessage `json:"set" doc:"Settings to change in the text before the check, by key, as in PATCH /config. Null removes a key. The text must be valid."`
}

// Example returns an example for the OpenAPI document.
func (ValidateRequest) Example() string { return `{"text": "{}", "set": {"tools_limit": 15}}` }

// Validation is the result of validating a text.
type Validation struct {
	OK           bool            `json:"ok"`
	Mistakes     []Mistake       `json:"mistakes"`
	Warnings     []string        `json:"warnings" doc:"Warnings, such as keys without effect."`
	Changes      []KeyDifference `json:"changes" doc:"The differences from the current configuration."`
	Widens       []string        `json:"widens" doc:"The keys whose changes grant more access. With presence, these changes require a signature."`
	NeedsRestart []string        `json:"needs_restart" doc:"Settings that would take effect at the next start."`
	Text         string          `json:"text,omitempty" doc:"The text with the changes of set. Absent without set."`
}

// ChangeSettings changes settings in the file and applies the file.
func (s *ConfigOperations) ChangeSettings(ctx context.Context, c Caller, in SettingChanges) (Config, error) {
	keys := slices.Sorted(maps.Keys(in.Set))
	return s.changeFile(ctx, c, "set_config", keys, func() error {
		if err := s.checkKeysChangeable(keys); err != nil {
			return err
		}
		return s.withMaskedError(func() error {
			return s.live.SetConfigKeys(s.gateway.configConfirmFunc(ctx), in.etag(), in.Set, c.Actor.String())
		})
	})
}

// changeFile runs a change of the file that only a user may make, records it and returns the new configuration.
func (s *ConfigOperations) changeFile(ctx context.Context, c Caller, action string, keys []string, change func() error) (Config, error) {
	if err := s.gateway.runConfigChange(c, action, problem.ClipName(strings.Join(keys, ", ")), change); err != nil {
		return Config{}, err
	}
	return s.Config(ctx, c, Nothing{})
}

// withMaskedError runs a change of the file, and masks the secrets of the current file in its error.
func (s *ConfigOperations) withMaskedError(change func() error) error {
	text, err := s.live.ReadFile()
	if err == nil {
		err = change()
	}
	if err == nil {
		return nil
	}
	return s.maskConfigError(err, s.masker.maskText(text, s.live.AppliedText().Data))
}

// maskConfigError converts an error of package config about a text and masks secrets.
func (s *ConfigOperations) maskConfigError(err error, of maskedConfig) error {
	mistakes, _ := problem.From(err).Detail("problems").([]config.Mistake)
	return s.toMaskedProblem(err, of.toMaskedMistakes(mistakes), of)
}

// checkKeysChangeable rejects keys that can be changed only by editing the text.
func (s *ConfigOperations) checkKeysChangeable(keys []string) error {
	if len(keys) == 0 {
		return problem.New(problem.InvalidParameter, "The request has no settings.", `Send {"set": {"tools_limit": 15}}.`).With("parameter", "set")
	}
	settings := s.settingViews(nil)
	for _, key := range keys {
		if err := config.CheckSettableKey(key); err != nil {
			return err
		}
		if slices.ContainsFunc(settings, func(one Setting) bool { return one.Key == key && one.Locked }) {
			return problem.Newf(problem.InvalidParameter, "%s cannot be changed here.", key).
				WithHint("Edit the text of the file, and check that no flag or variable overrides it.").With("parameter", "set").With("value", key)
		}
	}
	return nil
}

// ReplaceFile replaces the whole file and applies it.
func (s *ConfigOperations) ReplaceFile(ctx context.Context, c Caller, in ConfigReplacement) (Config, error) {
	whole, shown, refused := s.restoreMaskedSecrets(in.etag(), in.Text)
	var keys []string
	if refused == nil {
		_, a := s.live.CheckText(whole)
		keys = differingKeys(a.Differences)
		if a.Err != nil {
			refused = s.toMaskedProblem(a.Err, shown.toMaskedMistakes(a.Mistakes), shown)
		}
	}
	return s.changeFile(ctx, c, "replace_config", keys, func() error {
		if refused != nil {
			return refused
		}
		if err := s.live.ReplaceText(s.gateway.configConfirmFunc(ctx), in.etag(), whole, c.Actor.String()); err != nil {
			return s.maskConfigError(err, shown)
		}
		return nil
	})
}

// restoreMaskedSecrets replaces the placeholders in a text with the secrets of the file. If match is not empty, it must
// be the ETag of the file.
func (s *ConfigOperations) restoreMaskedSecrets(match, text string) ([]byte, maskedConfig, error) {
	file, err := s.live.ReadFile()
	if err != nil {
		return nil, maskedConfig{}, err
	}
	if etag := config.ETag(file); match != "" && etag != match {
		return nil, maskedConfig{}, problem.Newf(problem.Conflict, "%s was changed since it was read.", s.live.Path()).
			WithHint("Read it again, and repeat the change.").With("etag", etag)
	}
	before := s.live.AppliedText().Data
	back, mistakes := s.masker.maskText(file, before).unmask(text)
	if mistakes == nil {
		mistakes = back.findExposedSecrets(before)
	}
	if mistakes != nil {
		return nil, back.maskedConfig, s.toMaskedProblem(problem.New(problem.InvalidConfig, "", "Nothing was changed."), mistakes, back.maskedConfig)
	}
	return back.whole, back.maskedConfig, nil
}

// Validate checks a text without changing anything.
func (s *ConfigOperations) Validate(_ context.Context, _ Caller, in ValidateRequest) (Validation, error) {
	v, err := s.validateText(in.IfMatch, in.Text)
	if err != nil || !v.OK || len(in.Set) == 0 {
		return v, err
	}
	if err := s.checkKeysChangeable(slices.Sorted(maps.Keys(in.Set))); err != nil {
		return v, err
	}
	text, err := config.SetConfigKeysInText([]byte(in.Text), in.Set)
	if err != nil {
		return v, err
	}
	v, err = s.validateText(in.IfMatch, string(text))
	v.Text = string(text)
	return v, err
}

// validateText checks a text with placeholders and compares it with the current text.
func (s *ConfigOperations) validateText(match, text string) (Validation, error) {
	whole, shown, err := s.restoreMaskedSecrets(IfMatchPrecondition{match}.etag(), text)
	v := Validation{Mistakes: []Mistake{}, Warnings: []string{}, Changes: []KeyDifference{}, Widens: []string{}, NeedsRestart: []string{}}
	if err != nil {
		mistakes, ok := problem.From(err).Detail("mistakes").([]Mistake)
		if !ok {
			return v, err
		}
		v.Mistakes = mistakes
		return v, nil
	}
	_, a := s.live.CheckText(whole)
	if v.OK = a.Err == nil; !v.OK {
		if v.Mistakes = shown.toMaskedMistakes(a.Mistakes); v.Mistakes == nil {
			v.Mistakes = []Mistake{{Message: shown.redactText(problem.From(a.Err).Message), Hint: shown.redactText(problem.From(a.Err).Hint)}}
		}
		return v, nil
	}
	v.Warnings = append(v.Warnings, mapSlice(a.Warnings, shown.redactText)...)
	v.Changes = s.maskedDifferences(shown, a.Differences)
	v.Widens = append(v.Widens, differingKeys(a.Grants)...)
	if a.NeedsRestart != nil {
		v.NeedsRestart = a.NeedsRestart
	}
	return v, nil
}

// ParseMaskedText parses a text whose placeholders represent secrets of the file. The error contains the positions of
// the mistakes.
func (s *ConfigOperations) ParseMaskedText(text string) (*config.Config, error) {
	whole, shown, err := s.restoreMaskedSecrets("", text)
	if err != nil {
		return nil, err
	}
	next, a := s.live.CheckText(whole)
	if a.Err != nil {
		return nil, s.toMaskedProblem(a.Err, shown.toMaskedMistakes(a.Mistakes), shown)
	}
	return next, nil
}

// ConfirmChanges applies the changes of the file that grant more access. If presence is on, a user must sign them.
func (s *ConfigOperations) ConfirmChanges(ctx context.Context, c Caller, _ Nothing) (Config, error) {
	return s.changeFile(ctx, c, "confirm_config", differingKeys(s.live.Unconfirmed().Differences), func() error {
		return s.withMaskedError(func() error {
			_, err := s.live.ConfirmFile(s.gateway.configConfirmFunc(ctx))
			return err
		})
	})
}

func differingKeys(all []config.Difference) []string {
	return mapSlice(all, func(d config.Difference) string { return d.Key })
}

// maskedDifferences converts differences for display, with secrets masked.
func (s *ConfigOperations) maskedDifferences(of maskedConfig, all []config.Difference) []KeyDifference {
	return append([]KeyDifference{}, mapSlice(all, func(d config.Difference) KeyDifference {
		return KeyDifference{d.Key, s.maskValue(of, d.From), s.maskValue(of, d.To)}
	})...)
}

// maskValue masks the secrets of the text and everything that looks like a credential in a value.
func (s *ConfigOperations) maskValue(of maskedConfig, value json.RawMessage) json.RawMessage {
	value = redact.JSON(value)
	if scrubbed := json.RawMessage(of.redactText(string(value))); json.Valid(scrubbed) {
		return scrubbed
	}
	return json.RawMessage(`"***"`)
}
