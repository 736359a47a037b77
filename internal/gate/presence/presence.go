// Package presence makes deciding need what an agent with a shell does not have: a
// passphrase in a person's head, or a person's finger on an authenticator.
//
// An Anchor is what verifies. A Claim is one line that says one thing which widens. A
// Statement is over claims, made for one request at one time, and is signed by the anchor.
// The Gate asks for statements (Require), keeps them as evidence, and says whether a
// decision that was loaded from somewhere was signed (Confirmed). It guarantees that a
// claim counts only when a statement that verifies has it; that a statement is taken once,
// for the request that it was made for, within five minutes; that a statement is stored
// before what it permits; that nothing counts where the anchor in the database is not the
// one whose fingerprint is in every other place, of which each instance on one database has
// its own; that the day after a reset is counted by these places and not by the database;
// and that what cannot be read counts for nothing.
//
// It does not say what widens (the operations do, and config), knows no surface, and
// proves no more than that somebody had the passphrase: who owns the account can replace
// the program. The passphrase itself is for Seal and Open alone, which run where a person
// types it, never in the daemon.
//
// Claim and statement stand at the bottom; on them passkey; on those anchor and chain; on
// those mark, proof, verdict and gate.
package presence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Kind is what proves that a person decides.
type Kind string

// The kinds.
const (
	None       Kind = "none"
	Passphrase Kind = "passphrase"
	Passkey    Kind = "passkey"
	// reset is no kind that anybody asks for: it stands in a chain for a reset.
	reset Kind = "reset"
)

// Words are the kinds that can be asked for.
func (Kind) Words() []string { return []string{string(None), string(Passphrase), string(Passkey)} }

// Digest is a SHA-256.
type Digest [sha256.Size]byte

// String returns the digest as texts have it.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

const digestPrefix = "sha256:"

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it takes what String returns.
func (d *Digest) UnmarshalText(text []byte) error {
	var read Digest
	if len(text) == len(digestPrefix)+2*len(read) {
		if _, err := hex.Decode(read[:], text[len(digestPrefix):]); err == nil && read.String() == string(text) {
			*d = read
			return nil
		}
	}
	return fmt.Errorf("it is not %s and 64 digits", digestPrefix)
}

// digest returns the digest of a text of one domain, so that none of another is taken for it.
func digest(domain string, text []byte) Digest {
	h := sha256.New()
	h.Write([]byte("mcpproxy presence " + domain + " v1\n"))
	h.Write(text)
	return Digest(h.Sum(nil))
}
