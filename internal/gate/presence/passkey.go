package presence

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// relyingParty is the relying party ID of passkeys. An IP address is not allowed, so the page that uses a passkey
// is at PageOrigin.
const relyingParty = "localhost"

// PageOrigin returns the origin of the pages on a port.
func PageOrigin(port string) string {
	if port == "80" {
		return "http://" + relyingParty // browsers omit the default port
	}
	return "http://" + relyingParty + ":" + port
}

// passkeyVerifier verifies WebAuthn assertions for one origin. It needs no attestation of the authenticator, because
// the signed anchor proves that the passkey belongs to the user.
type passkeyVerifier struct {
	credential []byte
	key        crypto.PublicKey
	origin     string
}

// The limits of credentials in bytes, and of RSA keys in bits.
const (
	maxCredential = 1023
	minRSA        = 2048
	maxRSA        = 8192
)

// newPasskeyVerifier returns the verifier of a credential with an X.509 public key.
func newPasskeyVerifier(credential, spki []byte, origin string) (p passkeyVerifier, err error) {
	if len(credential) == 0 || len(credential) > maxCredential {
		return p, errors.New("the anchor of a passkey has no credential")
	}
	u, err := url.Parse(origin)
	if err != nil || u.Hostname() != relyingParty || origin != PageOrigin(originPort(u)) {
		return p, errors.New("the anchor of a passkey has no origin " + PageOrigin("PORT"))
	}
	key, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return p, errors.New("the key of a passkey cannot be read")
	}
	switch k := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return p, errors.New("the key of a passkey has a curve other than P-256")
		}
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSA || bits > maxRSA {
			return p, errors.New("the RSA key of a passkey is too short or too long")
		}
	default:
		return p, errors.New("the key of a passkey has an unknown kind")
	}
	return passkeyVerifier{credential, key, origin}, nil
}

// originPort returns the port of an origin in its required form.
func originPort(origin *url.URL) string {
	n, err := strconv.ParseUint(origin.Port(), 10, 16)
	if origin.Port() == "" {
		return "80"
	}
	if err != nil || n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// assertion is a WebAuthn assertion.
type assertion struct {
	Credential        []byte
	AuthenticatorData []byte
	ClientData        []byte // JSON
	Signature         []byte
}

// toSignature returns the assertion as the signature of a statement.
func (a assertion) toSignature() []byte {
	parts := [][]byte{a.Credential, a.AuthenticatorData, a.ClientData, a.Signature}
	text := make([]string, len(parts))
	for i, part := range parts {
		text[i] = base64.RawURLEncoding.EncodeToString(part)
	}
	return []byte(strings.Join(text, "."))
}

// parseAssertion parses the result of toSignature.
func parseAssertion(text []byte) (a assertion, err error) {
	parts := strings.SplitN(string(text), ".", 5)
	into := []*[]byte{&a.Credential, &a.AuthenticatorData, &a.ClientData, &a.Signature}
	if len(text) > maxSignature || len(parts) != len(into) {
		return a, errors.New("it is not signed with a passkey")
	}
	for i, part := range parts {
		if *into[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return a, errors.New("it is not signed with a passkey")
		}
	}
	if !bytes.Equal(a.toSignature(), text) { // base64 decoding ignores line breaks
		err = errors.New("it is not signed with a passkey")
	}
	return a, err
}

// The layout of authenticator data: digest of the relying party ID, flags, signature counter.
const (
	flagsAt   = sha256.Size
	counterAt = flagsAt + 1
	leastData = counterAt + 4
)

// The flags.
const (
	userPresent    = 1 << 0
	userVerified   = 1 << 2
	backupEligible = 1 << 3
	backedUp       = 1 << 4
	hasCredential  = 1 << 6
	hasExtensions  = 1 << 7
)

// Verify implements signatureVerifier.
func (p passkeyVerifier) Verify(d Digest, signature []byte) error {
	a, err := parseAssertion(signature)
	if err != nil {
		return err
	}
	if !bytes.Equal(a.Credential, p.credential) {
		return errors.New("it is signed with another passkey")
	}
	if err := p.checkClientData(d, a.ClientData); err != nil {
		return err
	}
	if err := checkAuthenticatorData(a.AuthenticatorData); err != nil {
		return err
	}
	client := sha256.Sum256(a.ClientData)
	signed := append(bytes.Clone(a.AuthenticatorData), client[:]...)
	sum, ok := sha256.Sum256(signed), false
	switch k := p.key.(type) {
	case ed25519.PublicKey:
		ok = ed25519.Verify(k, signed, a.Signature)
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(k, sum[:], a.Signature)
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], a.Signature) == nil
	}
	if !ok {
		return errSignature
	}
	return nil
}

// checkClientData checks the client data of an assertion.
func (p passkeyVerifier) checkClientData(d Digest, data []byte) error {
	if wirejson.Check(data, wirejson.Limits{Bytes: maxSignature}) != nil || wirejson.Kind(data) != '{' {
		return errors.New("the browser data cannot be read")
	}
	text := func(name string) string {
		s, _ := wirejson.String(wirejson.Find(data, name))
		return s
	}
	elsewhere := wirejson.Find(data, "crossOrigin")
	switch {
	case text("type") != "webauthn.get":
		return errors.New("the passkey was not asked to sign")
	case text("challenge") != base64.RawURLEncoding.EncodeToString(d[:]):
		return errors.New("the passkey has signed another statement")
	case text("origin") != p.origin:
		return errors.New("the page that asked is not one of " + p.origin)
	case elsewhere != nil && string(elsewhere) != "false" || wirejson.Find(data, "topOrigin") != nil:
		return errors.New("the page was embedded in another page")
	}
	return nil
}

// checkAuthenticatorData checks the authenticator data.
func checkAuthenticatorData(data []byte) error {
	party := sha256.Sum256([]byte(relyingParty))
	if len(data) < leastData {
		return errors.New("the authenticator data cannot be read")
	}
	flags := data[flagsAt]
	has := func(flag byte) bool { return flags&flag != 0 }
	switch {
	case !bytes.Equal(data[:flagsAt], party[:]):
		return errors.New("the passkey is not one of " + relyingParty)
	case !has(userPresent):
		return errors.New("the authenticator did not confirm user presence")
	case !has(userVerified):
		return errors.New("the authenticator did not verify the user")
	case has(backedUp) && !has(backupEligible), has(hasCredential), has(hasExtensions) != (len(data) > leastData):
		return errors.New("the authenticator data cannot be read")
	}
	return nil
}

// signatureCounter returns the signature counter; 0 if the authenticator does not count or the signature is not from
// a passkey.
func signatureCounter(signature []byte) uint32 {
	a, err := parseAssertion(signature)
	if err != nil || len(a.AuthenticatorData) < leastData {
		return 0
	}
	return binary.BigEndian.Uint32(a.AuthenticatorData[counterAt:])
}
