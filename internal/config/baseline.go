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

// Permit asks a person, who signs the claims, before something widens. It is called once
// for a change, before anything is changed, and perhaps without a claim. With its error
// nothing changes.
type Permit func(claims ...Claim) error

// Claim is what a person signs: words, and values. See presence.NewClaim.
type Claim struct {
	Words  string
	Values []string
}

// Signed says what a person has signed. See presence.Gate.
type Signed interface {
	// On reports whether what widens needs a person.
	On() bool
	// Confirmed reports whether a person has signed the claim.
	Confirmed(Claim) bool
	// Void returns why nothing that was signed counts, and what to do about that; "" when
	// it does.
	Void() (why, remedy string)
}

// baseline is what the configuration in force may not be wider than, as long as presence
// is not none: the one that a person has signed last, but for what was narrowed since.
type baseline struct {
	dir      string // where it is kept
	instance string // whose it is, among those that share what is signed
	signed   Signed // nil: it is not known yet what is
	logger   *slog.Logger

	limit *Config // nil: presence is none
	// why none that was signed counts, and what to do before one can be; "" is to sign one.
	why, remedy string
}

// seal is a configuration as it is signed: of a number, so that no earlier one can take
// its place, and with salt, so that nobody can guess the secrets in it by its digest.
type seal struct {
	Number int    `json:"number"`
	Salt   string `json:"salt"`
	text   []byte // canonical
}

// What is kept. The confirmed one is written under another name before it is signed.
const (
	baselineDir   = "config-confirmed"
	confirmedFile = "confirmed"
	nextFile      = "next"
	narrowedFile  = "narrowed"
	maxSeal       = 16 << 20
)

// claims are what a person signs of a seal: its text, and that there is one of its number.
func (b *baseline) claims(s seal) []Claim {
	h := sha256.New()
	h.Write([]byte("mcpproxy configuration v1\n" + s.Salt + "\n"))
	h.Write(s.text)
	return []Claim{b.numbered(s.Number), {"configuration text", []string{b.instance, strconv.Itoa(s.Number), "sha256:" + hex.EncodeToString(h.Sum(nil))}}}
}

func (b *baseline) numbered(n int) Claim {
	return Claim{"configuration number", []string{b.instance, strconv.Itoa(n)}}
}

// Bounds on the value that a claim shows.
const maxShown = 4 << 10

// claimsOf are what a person reads and signs of what widens.
func claimsOf(all []Difference) (claims []Claim) {
	for _, d := range all {
		value := string(d.To)
		if len(value) > maxShown {
			value = fmt.Sprintf("sha256:%x", sha256.Sum256(d.To))
		}
		claims = append(claims, Claim{"configuration", []string{d.Key, value}})
	}
	return claims
}

// load reads what was confirmed. wanted is the configuration that the file says, and parse
// makes one of a text.
func (b *baseline) load(wanted *Config, parse func(text []byte) (*Config, error)) error {
	b.limit, b.why, b.remedy = nil, "no configuration was confirmed", ""
	s, found := b.find()
	switch off := wanted.Presence == PresenceNone; {
	case off && b.signed == nil && !found:
		b.why = ""
		return nil
	case off && b.signed != nil && !b.signed.On():
		b.why = ""
		return b.forget()
	case !found:
		if b.signed != nil {
			if why, remedy := b.signed.Void(); why != "" {
				b.why, b.remedy = clause(why), clause(remedy)
			}
		}
		return b.close(parse)
	}
	limit, err := parse(s.text)
	if err != nil {
		b.why = fmt.Sprintf("what was confirmed is no configuration any more: %v", err)
		return b.close(parse)
	}
	b.limit, b.why = limit, ""
	if narrowed, err := os.ReadFile(b.path(narrowedFile)); err == nil {
		if c, err := parse(narrowed); err == nil && len(widenings(limit, c)) == 0 {
			b.limit = c
		}
	}
	return nil
}

// clause returns a sentence as it stands within another one.
func clause(sentence string) string {
	if sentence == "" {
		return ""
	}
	return strings.ToLower(sentence[:1]) + strings.TrimSuffix(sentence[1:], ".")
}

// waits is what is found to wait of a file that demands some presence.
func (b *baseline) waits(found []Difference, demanded Presence) *Unconfirmed {
	return &Unconfirmed{found, b.why, b.remedy, demanded}
}

// find returns the seal that counts. One under the other name got signed, and nothing more.
func (b *baseline) find() (seal, bool) {
	if b.signed != nil {
		if s, err := b.read(nextFile); err == nil && b.voids(s) == "" {
			if err := os.Rename(b.path(nextFile), b.path(confirmedFile)); err != nil {
				b.logger.Error("what was confirmed cannot be kept", "dir", b.dir, "error", err)
			}
			return s, true
		}
	}
	s, err := b.read(confirmedFile)
	switch {
	case err == nil:
		b.why = b.voids(s)
		return s, b.why == ""
	case !errors.Is(err, fs.ErrNotExist):
		b.why = fmt.Sprintf("what was confirmed cannot be read: %v", err)
	}
	return s, false
}

// forget takes away what counted before presence was none.
func (b *baseline) forget() (err error) {
	for _, name := range []string{confirmedFile, narrowedFile} {
		if e := os.Remove(b.path(name)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// close has nothing widen over the configuration that says nothing.
func (b *baseline) close(parse func(text []byte) (*Config, error)) (err error) {
	if b.limit, err = parse([]byte("{}")); err != nil { // the command line has it listen elsewhere
		b.limit, err = parse([]byte(`{"require_mcp_auth": true}`))
	}
	return err
}

// voids returns why a seal does not count: it was not signed, or a later one was. As long as
// it is not known what is signed, one that was kept counts.
func (b *baseline) voids(s seal) string {
	if b.signed == nil {
		return ""
	}
	for _, claim := range b.claims(s) {
		if !b.signed.Confirmed(claim) {
			return "the text of the configuration that was confirmed is not what was signed"
		}
	}
	if b.signed.Confirmed(b.numbered(s.Number + 1)) {
		return "a later configuration was confirmed, and its text is gone"
	}
	return ""
}

// hold returns what of next is in force, and what of it waits.
func (b *baseline) hold(next *Config) (*Config, []Difference) {
	if b.limit == nil {
		return next, nil
	}
	return clamp(b.limit, next, nil)
}

// allow returns the limit once more, which what is changed of next may pass; nil where
// there is none.
func (b *baseline) allow(next *Config, changes func(key string) bool) *Config {
	if b.limit == nil {
		return nil
	}
	limit, _ := clamp(b.limit, next, changes)
	return limit
}

// narrow has the configuration in force be the limit from now on: nobody who edits the
// file undoes what was narrowed.
func (b *baseline) narrow(live *Config) {
	if b.limit == nil || b.why != "" {
		return
	}
	text, err := live.canonical()
	if err == nil {
		var before []byte
		if before, err = b.limit.canonical(); err == nil && bytes.Equal(before, text) {
			return
		}
	}
	b.limit = live
	if err == nil {
		err = b.write(narrowedFile, text)
	}
	if err != nil {
		b.logger.Error("what was narrowed cannot be kept, and can be undone after a restart", "dir", b.dir, "error", err)
	}
}

// widen has limit be signed, and then count, in the place of the one that does.
func (b *baseline) widen(limit *Config, permit Permit) error {
	if b.limit == nil {
		return permit.call()
	}
	widened := widenings(b.limit, limit)
	if len(widened) == 0 {
		return permit.call()
	}
	return b.confirm(limit, widened, permit)
}

func (p Permit) call(claims ...Claim) error {
	if p != nil {
		return p(claims...)
	}
	if len(claims) > 0 {
		return problem.New(problem.PresenceRequired, "A person has to permit this, and cannot from here.", "Use the command of mcpproxy that does it, in a terminal.")
	}
	return nil
}

func (b *baseline) confirm(limit *Config, widened []Difference, permit Permit) error {
	if permit == nil { // nothing is made ready that nobody signs
		return permit.call(claimsOf(widened)...)
	}
	s, err := b.seal(limit)
	if err != nil {
		return problem.New(problem.AuditUnavailable, "What is to be confirmed cannot be kept.", "Make room on the disk of "+b.dir+", and see that it can be written.").Because(err)
	}
	if err := permit.call(append(claimsOf(widened), b.claims(s)...)...); err != nil {
		return err
	}
	if err := os.Rename(b.path(nextFile), b.path(confirmedFile)); err != nil {
		return err
	}
	if err := os.Remove(b.path(narrowedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.logger.Warn("what was narrowed before cannot be taken away", "dir", b.dir, "error", err) // it is not wider
	}
	b.limit, b.why = limit, ""
	return nil
}

// seal makes limit ready to be signed. The same one is made ready once.
func (b *baseline) seal(limit *Config) (seal, error) {
	text, err := limit.canonical()
	if err != nil {
		return seal{}, err
	}
	s := seal{Number: 1, Salt: rand.Text(), text: text}
	on := b.signed != nil && b.signed.On()
	for on && b.signed.Confirmed(b.numbered(s.Number)) {
		s.Number++
	}
	if before, err := b.read(nextFile); err == nil && bytes.Equal(before.text, text) && (before.Number == s.Number || on && b.voids(before) == "") {
		return before, nil // it is being signed, or was just now
	}
	head, err := json.Marshal(s)
	if err != nil {
		return seal{}, err
	}
	return s, b.write(nextFile, slices.Concat(head, []byte("\n"), text))
}

func (b *baseline) path(name string) string { return filepath.Join(b.dir, name) }

func (b *baseline) write(name string, text []byte) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	return ondisk.Replace(b.path(name), text)
}

func (b *baseline) read(name string) (s seal, err error) {
	if info, err := os.Stat(b.path(name)); err != nil || info.Size() > maxSeal {
		return s, errors.Join(err, fs.ErrNotExist)
	}
	whole, err := os.ReadFile(b.path(name))
	if err != nil {
		return s, err
	}
	head, text, _ := bytes.Cut(whole, []byte("\n"))
	if err := json.Unmarshal(head, &s); err != nil {
		return s, fmt.Errorf("%s was changed", b.path(name))
	}
	s.text = text
	return s, nil
}
