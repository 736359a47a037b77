package ops

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"

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
func (s *ConfigOperations) settingViews(text []byte) (out []Setting) {
	for _, one := range config.ListSettings(s.live.Current(), text) {
		out = append(out, Setting{one.Key, one.Type, one.Range, one.Doc, redact.JSON(one.Value), one.Default, one.Allowed, one.Restart, one.Set,
			one.Secret || one.Key == "data_dir" || s.live.IsOverridden(one.Key)})
	}
	return out
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
	var lines []config.Mistake
	for _, m := range mistakes {
		lines = append(lines, config.Mistake{Line: m.Line, Column: m.Column, Path: m.Key, Message: m.Message, Hint: m.Hint})
	}
	whole := config.NewMistakesError(filepath.Base(s.live.Path()), lines)
	return problem.New(p.Code, whole.Message, p.Hint).With("mistakes", mistakes)
}
