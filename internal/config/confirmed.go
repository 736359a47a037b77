package config

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/problem"
)

// ConfirmFunc asks a user to sign the claims before a change grants more access. It is called once per change, before
// anything changes, possibly without a claim. If it fails, nothing changes.
type ConfirmFunc func(claims ...Claim) error

// Claim is a part of a statement that a user signs: a text and values. See presence.NewClaim.
type Claim struct {
	Words  string
	Values []string
}

// SignatureVerifier verifies users' signatures. See presence.Gate.
type SignatureVerifier interface {
	// IsOn reports whether changes that grant more access need a user's confirmation.
	IsOn() bool
	// IsConfirmed reports whether a user has signed the claim.
	IsConfirmed(Claim) bool
	// VoidReason returns the reason why all signatures are invalid, and how to fix that; "" if they are valid.
	VoidReason() (why, remedy string)
}

// confirmedConfig limits the current configuration while presence is not none. That configuration may not grant more
// than the last signed configuration, minus later restrictions.
type confirmedConfig struct {
	dir      string            // directory with the stored configuration
	instance string            // owner among the instances that share the signatures
	verifier SignatureVerifier // nil: signatures cannot be verified yet
	logger   *slog.Logger

	limit *Config // nil if presence is none
	// invalidReason is the reason why no signed configuration is valid. remedy is the step to take before one can be
	// signed; "" if the user only has to sign.
	invalidReason, remedy string
}

// signedConfig is a signed configuration. It has a number, so that an earlier configuration cannot replace it, and a
// salt, so that its digest does not reveal secrets.
type signedConfig struct {
	Number int    `json:"number"`
	Salt   string `json:"salt"`
	text   []byte // canonical form
}

// File names. A confirmed configuration is written as nextFile before it is signed.
const (
	baselineDir   = "config-confirmed"
	confirmedFile = "confirmed"
	nextFile      = "next"
	narrowedFile  = "narrowed"
	maxSeal       = 16 << 20
)

// claimsFor returns the claims that a user signs: the text, and the number of the configuration.
func (b *confirmedConfig) claimsFor(s signedConfig) []Claim {
	h := sha256.New()
	h.Write([]byte("mcpproxy configuration v1\n" + s.Salt + "\n"))
	h.Write(s.text)
	return []Claim{b.newNumberClaim(s.Number), {"configuration text", []string{b.instance, strconv.Itoa(s.Number), "sha256:" + hex.EncodeToString(h.Sum(nil))}}}
}

func (b *confirmedConfig) newNumberClaim(n int) Claim {
	return Claim{"configuration number", []string{b.instance, strconv.Itoa(n)}}
}

// maxClaimValue is the maximum size of the value that a claim shows.
const maxClaimValue = 4 << 10

// toClaims returns the claims for changes that grant more access.
func toClaims(all []Difference) (claims []Claim) {
	for _, d := range all {
		value := string(d.To)
		if len(value) > maxClaimValue {
			value = fmt.Sprintf("sha256:%x", sha256.Sum256(d.To))
		}
		claims = append(claims, Claim{"configuration", []string{d.Key, value}})
	}
	return claims
}

// loadConfirmed loads the confirmed configuration. wanted is the configuration in the file.
func (b *confirmedConfig) loadConfirmed(wanted *Config, parse func(text []byte) (*Config, error)) error {
	b.limit, b.invalidReason, b.remedy = nil, "no configuration was confirmed", ""
	s, found := b.findSigned()
	switch off := wanted.Presence == PresenceNone; {
	case off && b.verifier == nil && !found:
		b.invalidReason = ""
		return nil
	case off && b.verifier != nil && !b.verifier.IsOn():
		b.invalidReason = ""
		return b.removeFiles()
	case !found:
		if b.verifier != nil {
			if why, remedy := b.verifier.VoidReason(); why != "" {
				b.invalidReason, b.remedy = sentenceToClause(why), sentenceToClause(remedy)
			}
		}
		return b.limitToEmpty(parse)
	}
	limit, err := parse(s.text)
	if err != nil {
		b.invalidReason = fmt.Sprintf("the confirmed configuration is no longer valid: %v", err)
		return b.limitToEmpty(parse)
	}
	b.limit, b.invalidReason = limit, ""
	if narrowed, err := os.ReadFile(b.filePath(narrowedFile)); err == nil {
		if c, err := parse(narrowed); err == nil && len(findAccessIncreases(limit, c)) == 0 {
			b.limit = c
		}
	}
	return nil
}

// sentenceToClause returns a sentence in the form of a clause, for use within another sentence.
func sentenceToClause(sentence string) string {
	if sentence == "" {
		return ""
	}
	return strings.ToLower(sentence[:1]) + strings.TrimSuffix(sentence[1:], ".")
}

// newUnconfirmed returns the unconfirmed changes of a file. demanded is the presence value in that file.
func (b *confirmedConfig) newUnconfirmed(found []Difference, demanded Presence) *UnconfirmedChanges {
	return &UnconfirmedChanges{found, b.invalidReason, b.remedy, demanded}
}

// findSigned returns the valid signed configuration. A valid one in nextFile was signed but not renamed yet.
func (b *confirmedConfig) findSigned() (signedConfig, bool) {
	if b.verifier != nil {
		if s, err := b.readSigned(nextFile); err == nil && b.invalidityReason(s) == "" {
			if err := os.Rename(b.filePath(nextFile), b.filePath(confirmedFile)); err != nil {
				b.logger.Error("the confirmed configuration cannot be stored", "dir", b.dir, "error", err)
			}
			return s, true
		}
	}
	s, err := b.readSigned(confirmedFile)
	switch {
	case err == nil:
		b.invalidReason = b.invalidityReason(s)
		return s, b.invalidReason == ""
	case !errors.Is(err, fs.ErrNotExist):
		b.invalidReason = fmt.Sprintf("the confirmed configuration cannot be read: %v", err)
	}
	return s, false
}

// removeFiles deletes the stored confirmed configuration after presence was set to none.
func (b *confirmedConfig) removeFiles() (err error) {
	for _, name := range []string{confirmedFile, narrowedFile} {
		if e := os.Remove(b.filePath(name)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// limitToEmpty sets the limit to the empty configuration.
func (b *confirmedConfig) limitToEmpty(parse func(text []byte) (*Config, error)) (err error) {
	if b.limit, err = parse([]byte("{}")); err != nil { // listen comes from the command line
		b.limit, err = parse([]byte(`{"require_mcp_auth": true}`))
	}
	return err
}

// invalidityReason returns the reason why a signed configuration is invalid: it is unsigned, or a later one is
// signed. While signatures cannot be verified, a stored one is valid.
func (b *confirmedConfig) invalidityReason(s signedConfig) string {
	if b.verifier == nil {
		return ""
	}
	for _, claim := range b.claimsFor(s) {
		if !b.verifier.IsConfirmed(claim) {
			return "the text of the confirmed configuration is not the signed one"
		}
	}
	if b.verifier.IsConfirmed(b.newNumberClaim(s.Number + 1)) {
		return "a later configuration was confirmed, and its text is missing"
	}
	return ""
}

// withholdAccessIncreases returns the part of next that takes effect, and the differences that await
// confirmation.
func (b *confirmedConfig) withholdAccessIncreases(next *Config) (*Config, []Difference) {
	if b.limit == nil {
		return next, nil
	}
	return clampAccessExcept(b.limit, next, nil)
}

// extendedLimit returns the limit, extended by the given keys of next; nil if there is no limit.
func (b *confirmedConfig) extendedLimit(next *Config, changes func(key string) bool) *Config {
	if b.limit == nil {
		return nil
	}
	limit, _ := clampAccessExcept(b.limit, next, changes)
	return limit
}

// narrowLimitTo makes the current configuration the limit and saves it, so that restrictions cannot be undone by
// editing the file.
func (b *confirmedConfig) narrowLimitTo(live *Config) {
	if b.limit == nil || b.invalidReason != "" {
		return
	}
	text, err := live.canonicalJSONWithSecrets()
	if err == nil {
		var before []byte
		if before, err = b.limit.canonicalJSONWithSecrets(); err == nil && bytes.Equal(before, text) {
			return
		}
	}
	b.limit = live
	if err == nil {
		err = b.writeFile(narrowedFile, text)
	}
	if err != nil {
		b.logger.Error("restrictions cannot be stored, and can be lost after a restart", "dir", b.dir, "error", err)
	}
}

// confirmLimitIfWidened makes limit the confirmed configuration once it is signed, if it grants more access than the
// previous one. It calls permit in any case.
func (b *confirmedConfig) confirmLimitIfWidened(limit *Config, permit ConfirmFunc) error {
	if b.limit == nil {
		return permit.requestConfirmation()
	}
	increases := findAccessIncreases(b.limit, limit)
	if len(increases) == 0 {
		return permit.requestConfirmation()
	}
	return b.confirmLimit(limit, increases, permit)
}

func (p ConfirmFunc) requestConfirmation(claims ...Claim) error {
	if p != nil {
		return p(claims...)
	}
	if len(claims) > 0 {
		return problem.New(problem.PresenceRequired, "This requires a signature, which is not possible from here.", "Use the mcpproxy command for it, in a terminal.")
	}
	return nil
}

func (b *confirmedConfig) confirmLimit(limit *Config, increases []Difference, permit ConfirmFunc) error {
	if permit == nil { // no user can be asked to sign
		return permit.requestConfirmation(toClaims(increases)...)
	}
	s, err := b.storeForSigning(limit)
	if err != nil {
		return problem.New(problem.AuditUnavailable, "The configuration to confirm cannot be stored.", "Free space on the disk of "+b.dir+", and check that it is writable.").Because(err)
	}
	if err := permit.requestConfirmation(append(toClaims(increases), b.claimsFor(s)...)...); err != nil {
		return err
	}
	if err := os.Rename(b.filePath(nextFile), b.filePath(confirmedFile)); err != nil {
		return err
	}
	if err := os.Remove(b.filePath(narrowedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.logger.Warn("earlier restrictions cannot be removed", "dir", b.dir, "error", err) // grants no more access
	}
	b.limit, b.invalidReason = limit, ""
	return nil
}

// storeForSigning stores limit as the next configuration to be signed. A repeated call with the same limit returns
// the stored one.
func (b *confirmedConfig) storeForSigning(limit *Config) (signedConfig, error) {
	text, err := limit.canonicalJSONWithSecrets()
	if err != nil {
		return signedConfig{}, err
	}
	s := signedConfig{Number: 1, Salt: rand.Text(), text: text}
	on := b.verifier != nil && b.verifier.IsOn()
	for on && b.verifier.IsConfirmed(b.newNumberClaim(s.Number)) {
		s.Number++
	}
	if before, err := b.readSigned(nextFile); err == nil && bytes.Equal(before.text, text) && (before.Number == s.Number || on && b.invalidityReason(before) == "") {
		return before, nil // limit is being signed, or was just signed
	}
	head, err := json.Marshal(s)
	if err != nil {
		return signedConfig{}, err
	}
	return s, b.writeFile(nextFile, slices.Concat(head, []byte("\n"), text))
}

func (b *confirmedConfig) filePath(name string) string { return filepath.Join(b.dir, name) }

func (b *confirmedConfig) writeFile(name string, text []byte) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	return ondisk.ReplaceFile(b.filePath(name), text)
}

func (b *confirmedConfig) readSigned(name string) (s signedConfig, err error) {
	if info, err := os.Stat(b.filePath(name)); err != nil || info.Size() > maxSeal {
		return s, errors.Join(err, fs.ErrNotExist)
	}
	whole, err := os.ReadFile(b.filePath(name))
	if err != nil {
		return s, err
	}
	head, text, _ := bytes.Cut(whole, []byte("\n"))
	if err := json.Unmarshal(head, &s); err != nil {
		return s, fmt.Errorf("%s was changed", b.filePath(name))
	}
	s.text = text
	return s, nil
}
