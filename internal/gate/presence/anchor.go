package presence

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/argon2"

	"mcpproxy/internal/mcp/wirejson"
)

// Anchor is a key that verifies statements, or states that there is none.
type Anchor struct {
	Kind   ProofKind  `json:"kind"`
	Since  time.Time  `json:"since"`
	Before Digest     `json:"before"`           // fingerprint of the previous anchor; zero for the first
	Key    []byte     `json:"key,omitempty"`    // passphrase: Ed25519 public key; passkey: X.509 public key
	Sealed *SealedKey `json:"sealed,omitempty"` // passphrase: the private key; not in the fingerprint
	Nonce  string     `json:"nonce,omitempty"`  // nonce of the statement that set the anchor; not in the fingerprint

	// Passkey: the credential ID, and the origin of the pages that use it.
	Credential []byte `json:"credential,omitempty"`
	Origin     string `json:"origin,omitempty"`
}

// Fingerprint identifies the anchor and all anchors before it.
func (a *Anchor) Fingerprint() Digest {
	return domainDigest("anchor", fmt.Appendf(nil, "%s\n%s\n%s\n%x\n%x\n%q\n", a.Kind, a.Since.UTC().Format(timeForm), a.Before, a.Key, a.Credential, a.Origin))
}

// toClaim returns the claim that is signed to set the anchor.
func (a *Anchor) toClaim() Claim {
	return NewClaim("presence anchor", string(a.Kind), a.Fingerprint().String())
}

// canVerifyStatements reports whether the anchor verifies statements.
func (a *Anchor) canVerifyStatements() bool { return a.Kind == Passphrase || a.Kind == Passkey }

// signatureVerifier verifies signatures, one per kind of anchor.
type signatureVerifier interface {
	Verify(digest Digest, signature []byte) error
}

// newVerifier returns the verifier of the anchor.
func (a *Anchor) newVerifier() signatureVerifier {
	switch a.Kind {
	case Passphrase:
		if len(a.Key) == ed25519.PublicKeySize {
			return ed25519Verifier(a.Key)
		}
	case Passkey:
		if p, err := newPasskeyVerifier(a.Credential, a.Key, a.Origin); err == nil {
			return p
		}
	}
	return rejectingVerifier{}
}

// ed25519Verifier verifies Ed25519 signatures.
type ed25519Verifier ed25519.PublicKey

func (k ed25519Verifier) Verify(d Digest, signature []byte) error {
	if !ed25519.Verify(ed25519.PublicKey(k), d[:], signature) {
		return errSignature
	}
	return nil
}

// rejectingVerifier accepts no signature.
type rejectingVerifier struct{}

func (rejectingVerifier) Verify(Digest, []byte) error { return errSignature }

// verifyEvidence returns an error if the evidence is not valid for the anchor.
func (a *Anchor) verifyEvidence(e *Evidence) error {
	if err := e.checkClaims(); err != nil {
		return err
	}
	if e.Anchor != a.Fingerprint() {
		return errors.New("it belongs to another anchor")
	}
	return a.newVerifier().Verify(e.Digest(), e.Signature)
}

// SealedKey is a private key that is encrypted with a passphrase.
type SealedKey struct {
	Salt           []byte `json:"salt"`
	Time           uint32 `json:"time"` // parameter of argon2id
	ArgonMemoryKiB uint32 `json:"memory_kib"`
	Lanes          uint8  `json:"lanes"`
	Nonce          []byte `json:"nonce"` // nonce of AES-256-GCM
	Ciphertext     []byte `json:"box"`
}

// argonCost contains the argon2id parameters of the second recommendation of RFC 9106.
var argonCost = SealedKey{Time: 3, ArgonMemoryKiB: 64 << 10, Lanes: 4}

// The limits of argon2id parameters in stored keys.
const (
	maxTime   = 10
	maxMemory = 1 << 20 // KiB
	maxLanes  = 16
)

// minPassphrase is the minimum length in bytes. An attacker that can read the database can guess offline.
const minPassphrase = 12

// ErrPassphrase means that a passphrase is wrong.
var ErrPassphrase = errors.New("the passphrase is wrong")

// NewPassphraseAnchor returns the anchor of a passphrase that follows another one.
func NewPassphraseAnchor(passphrase []byte, after Digest, now time.Time) (Anchor, ed25519.PrivateKey, error) {
	return newPassphraseAnchor(passphrase, after, now, argonCost)
}

func newPassphraseAnchor(passphrase []byte, after Digest, now time.Time, c SealedKey) (Anchor, ed25519.PrivateKey, error) {
	if len(passphrase) < minPassphrase {
		return Anchor{}, nil, fmt.Errorf("the passphrase has fewer than %d characters", minPassphrase)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Anchor{}, nil, err
	}
	c.Salt, c.Nonce = make([]byte, 16), make([]byte, 12)
	_, _ = rand.Read(c.Salt) // never fails
	_, _ = rand.Read(c.Nonce)
	box, err := c.newCipher(passphrase)
	if err != nil {
		return Anchor{}, nil, err
	}
	c.Ciphertext = box.Seal(nil, c.Nonce, private.Seed(), public)
	return Anchor{Kind: Passphrase, Since: now.UTC().Truncate(time.Microsecond), Before: after, Key: public, Sealed: &c}, private, nil
}

// newCipher returns the cipher of a passphrase.
func (s *SealedKey) newCipher(passphrase []byte) (cipher.AEAD, error) {
	if s.Time < 1 || s.Time > maxTime || s.ArgonMemoryKiB > maxMemory || s.Lanes < 1 || s.Lanes > maxLanes || len(s.Salt) != 16 || len(s.Nonce) != 12 || len(s.Ciphertext) > 1024 {
		return nil, errors.New("the sealed key is invalid")
	}
	block, err := aes.NewCipher(argon2.IDKey(passphrase, s.Salt, s.Time, s.ArgonMemoryKiB, s.Lanes, 32))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// OpenSealedKey returns the private key of the anchor, or ErrPassphrase.
func (a *Anchor) OpenSealedKey(passphrase []byte) (ed25519.PrivateKey, error) {
	if a.Kind != Passphrase || a.Sealed == nil {
		return nil, errors.New("no passphrase opens this anchor")
	}
	box, err := a.Sealed.newCipher(passphrase)
	if err != nil {
		return nil, err
	}
	seed, err := box.Open(nil, a.Sealed.Nonce, a.Sealed.Ciphertext, a.Key)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, ErrPassphrase
	}
	private := ed25519.NewKeyFromSeed(seed)
	if !bytes.Equal(private.Public().(ed25519.PublicKey), a.Key) {
		return nil, ErrPassphrase
	}
	return private, nil
}

// SignStatement signs a statement with the key of a passphrase.
func SignStatement(s Statement, k ed25519.PrivateKey) SignedStatement {
	d := s.Digest()
	return SignedStatement{s, ed25519.Sign(k, d[:])}
}

// maxAnchor limits the size of an anchor in bytes, maxChain the length of the chain.
const (
	maxAnchor = 64 << 10
	maxChain  = 1_000
)

// StoredJSON returns the stored form of the anchor.
func (a *Anchor) StoredJSON() ([]byte, error) { return wirejson.MarshalWithoutHTMLEscape(a) }

// ParseAnchor parses the stored form of an anchor.
func ParseAnchor(text []byte) (Anchor, error) {
	var a Anchor
	if len(text) > maxAnchor {
		return a, fmt.Errorf("an anchor has %d bytes, more than %d", len(text), maxAnchor)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, errors.New("an anchor cannot be read")
	}
	if a.Kind != Passkey {
		a.Credential, a.Origin = nil, ""
	}
	switch a.Kind {
	case None, reset:
		a.Key, a.Sealed = nil, nil
	case Passkey:
		a.Sealed = nil
		if _, err := newPasskeyVerifier(a.Credential, a.Key, a.Origin); err != nil {
			return a, err
		}
	case Passphrase:
		if len(a.Key) != ed25519.PublicKeySize || a.Sealed == nil {
			return a, errors.New("the anchor of a passphrase has no key")
		}
	default:
		return a, errors.New("an anchor has an unknown kind")
	}
	a.Since = a.Since.UTC().Truncate(time.Microsecond)
	return a, nil
}
