// Package presence requires a proof of the user for decisions that grant access. The proof is a passphrase or a touch
// on an authenticator, which an agent with a shell does not have.
//
// An Anchor is the key that verifies signatures. A Claim is one line that states one grant of access. A Statement
// contains claims for one request at one time, and is signed by the anchor. The Gate requires statements
// (RequireSigned), stores them as evidence, and reports whether a loaded decision was signed (IsConfirmed).
//
// Files:
//
//   - gate.go: Gate loads the state, requires and stores statements; status.go: its status; set_anchor.go: sets and
//     resets the anchor, joins an instance
//   - anchor.go: keys and passphrases; passkey.go: WebAuthn; chain.go: the signed list of anchors
//   - claim.go, statement.go, sign_request.go: the signed data; proof.go: the proof in a request
//   - mark.go: the fingerprint of the anchor in the fingerprint stores, outside of the database; verdict.go: the
//     verdict about the whole state
//
// Guarantees and limits:
//
//   - A claim is valid only if a verified statement contains it.
//   - A statement is accepted once, for its own request, within five minutes, and is stored before the permitted
//     change is made.
//   - No claim is valid if the anchor in the database does not match its fingerprint in every fingerprint store
//     ("place"). Each instance has its own places.
//   - The waiting time after a reset is measured by these places, not by the database.
//   - State that cannot be read makes no claim valid.
//   - The package does not define which changes grant access (ops and config do). A signature proves only that the
//     passphrase was available; the owner of the account can replace the program. The passphrase is used only by
//     NewPassphraseAnchor and OpenSealedKey, in the process where the user types it, never in the daemon.
package presence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// ProofKind is the kind of proof for a decision of the user.
type ProofKind string

// The kinds.
const (
	None       ProofKind = "none"
	Passphrase ProofKind = "passphrase"
	Passkey    ProofKind = "passkey"
	// reset is not configurable: it marks a reset in a chain.
	reset ProofKind = "reset"
)

// Words returns the configurable kinds.
func (ProofKind) Words() []string { return []string{string(None), string(Passphrase), string(Passkey)} }

// Digest is a SHA-256.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal with a prefix.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

const digestPrefix = "sha256:"

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts only the result of String.
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

// domainDigest returns the digest of a text in a domain, so that digests of different domains never match.
func domainDigest(domain string, text []byte) Digest {
	h := sha256.New()
	h.Write([]byte("mcpproxy presence " + domain + " v1\n"))
	h.Write(text)
	return Digest(h.Sum(nil))
}
