package presence

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"

	"mcpproxy/internal/problem"
)

// authenticatorOf is a software authenticator with one passkey.
type authenticatorOf struct {
	signer     crypto.Signer
	credential []byte
	origin     string
	count      uint32
}

func newAuthenticator(t *testing.T, algorithm string) *authenticatorOf {
	t.Helper()
	a := &authenticatorOf{credential: []byte("credential of " + algorithm), origin: PageOrigin("8080"), count: 1}
	var err error
	switch algorithm {
	case "ES256":
		a.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		a.signer, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "EdDSA":
		_, a.signer, err = ed25519.GenerateKey(rand.Reader)
	case "RS256":
		a.signer, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// anchor returns the anchor of the passkey, which follows the current anchor.
func (a *authenticatorOf) anchor(t *testing.T, w *world) Anchor {
	t.Helper()
	spki, err := x509.MarshalPKIXPublicKey(a.signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	return Anchor{Kind: Passkey, Since: w.now.UTC().Truncate(1000), Before: w.HeadFingerprint(), Key: spki, Credential: a.credential, Origin: a.origin}
}

// parts are the parts of an assertion before it is signed.
type parts struct {
	client  map[string]any
	party   string
	flags   byte
	count   uint32
	more    []byte // further bytes of the authenticator data
	another crypto.Signer
	made    assertion // the signed assertion
}

// assert signs a digest. change may modify the parts before the signature, and is called again after it to modify
// made.
func (a *authenticatorOf) assert(t *testing.T, d Digest, change func(*parts)) assertion {
	t.Helper()
	a.count++
	p := &parts{
		client: map[string]any{"type": "webauthn.get", "challenge": base64.RawURLEncoding.EncodeToString(d[:]), "origin": a.origin, "crossOrigin": false},
		party:  relyingParty, flags: userPresent | userVerified, count: a.count, another: a.signer,
	}
	if change != nil {
		change(p)
	}
	party := sha256.Sum256([]byte(p.party))
	data := append(binary.BigEndian.AppendUint32(append(party[:], p.flags), p.count), p.more...)
	client, err := json.Marshal(p.client)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(client)
	signed := append(bytes.Clone(data), sum[:]...)
	hash := crypto.SHA256
	if _, ok := p.another.(ed25519.PrivateKey); ok {
		hash = 0
	} else {
		sum = sha256.Sum256(signed)
		signed = sum[:]
	}
	signature, err := p.another.Sign(rand.Reader, signed, hash)
	if err != nil {
		t.Fatal(err)
	}
	p.made = assertion{bytes.Clone(a.credential), data, client, signature}
	if change != nil {
		change(p)
	}
	return p.made
}

// doPasskey calls f as a web page that makes the passkey sign the requested statement.
func (w *world) doPasskey(a *authenticatorOf, change func(*parts), f func(context.Context) error) error {
	w.t.Helper()
	s, _ := asked(w.t, f(WithProof(w.t.Context(), &Proof{For: request})))
	signed := SignedStatement{s, a.assert(w.t, s.Digest(), change).toSignature()}
	return f(WithProof(w.t.Context(), &Proof{For: request, Text: signed.HeaderValue()}))
}

func (w *world) enrolPasskey(a *authenticatorOf) Anchor {
	w.t.Helper()
	anchor := a.anchor(w.t, w)
	if err := w.doPasskey(a, nil, func(ctx context.Context) error { return w.SetAnchor(ctx, anchor) }); err != nil {
		w.t.Fatal(err)
	}
	return anchor
}

var algorithms = []string{"ES256", "EdDSA", "RS256"}

func TestAPasskeySigns(t *testing.T) {
	for _, algorithm := range algorithms {
		t.Run(algorithm, func(t *testing.T) {
			w, a := newWorld(t), newAuthenticator(t, algorithm)
			w.inForce = []Claim{NewClaim("approve tool", "a", "old")}
			w.enrolPasskey(a)
			c := NewClaim("approve tool", "a", "b")
			if w.IsConfirmed(c) || !w.IsConfirmed(w.inForce[0]) {
				t.Fatal("not exactly the current decisions are signed")
			}
			if err := w.doPasskey(a, nil, require(w.Gate, c)); err != nil {
				t.Fatal(err)
			}
			w.restart()
			if s := w.standing(); s.Kind != Passkey || s.Void != "" || s.Signed != 2 || len(s.Bad) != 0 {
				t.Fatalf("unexpected status: %+v", s)
			}
			if !w.IsConfirmed(c) || !w.IsConfirmed(w.inForce[0]) || w.IsConfirmed(NewClaim("approve tool", "a", "c")) {
				t.Error("after a restart other claims are signed")
			}
			text, err := w.db.anchors[0].StoredJSON()
			if err != nil {
				t.Fatal(err)
			}
			if read, err := ParseAnchor(text); err != nil || read.Fingerprint() != w.db.anchors[0].Fingerprint() {
				t.Errorf("the stored anchor cannot be parsed: %v", err)
			}
		})
	}
}

// TestInvalidAssertions checks that an assertion with any changed part is rejected, and that another implementation
// agrees.
func TestInvalidAssertions(t *testing.T) {
	flag := func(set, clear byte) func(*parts) { return func(p *parts) { p.flags = p.flags&^clear | set } }
	member := func(name string, value any) func(*parts) { return func(p *parts) { p.client[name] = value } }
	after := func(f func(*assertion)) func(*parts) {
		return func(p *parts) {
			if p.made.ClientData != nil {
				f(&p.made)
			}
		}
	}
	for _, algorithm := range algorithms {
		own, stranger := newAuthenticator(t, algorithm), newAuthenticator(t, algorithm).signer
		tests := map[string]struct {
			change func(*parts)
			laxer  bool // the other implementation accepts it, or leaves the check to its caller
		}{
			"as it is":                  {nil, false},
			"type":                      {member("type", "webauthn.create"), false},
			"type in capitals":          {member("type", "WEBAUTHN.GET"), false},
			"no type":                   {func(p *parts) { delete(p.client, "type") }, false},
			"challenge":                 {member("challenge", base64.RawURLEncoding.EncodeToString(make([]byte, 32))), false},
			"no challenge":              {func(p *parts) { delete(p.client, "challenge") }, false},
			"challenge padded":          {func(p *parts) { p.client["challenge"] = p.client["challenge"].(string) + "=" }, false},
			"challenge under Name":      {func(p *parts) { p.client["Challenge"] = p.client["challenge"]; delete(p.client, "challenge") }, true},
			"origin by address":         {member("origin", "http://127.0.0.1:8080"), false},
			"origin of another port":    {member("origin", "http://localhost:8081"), false},
			"origin without a port":     {member("origin", "http://localhost"), false},
			"origin over TLS":           {member("origin", "https://localhost:8080"), false},
			"origin below":              {member("origin", "http://evil.localhost:8080"), false},
			"origin with a path":        {member("origin", "http://localhost:8080/"), true},
			"origin in capitals":        {member("origin", "HTTP://LOCALHOST:8080"), true},
			"no origin":                 {func(p *parts) { delete(p.client, "origin") }, false},
			"in a frame of another":     {member("crossOrigin", true), false},
			"in a frame, as text":       {member("crossOrigin", "true"), false},
			"top origin":                {member("topOrigin", "http://localhost:8080"), false},
			"party":                     {func(p *parts) { p.party = "127.0.0.1" }, false},
			"no one present":            {flag(0, userPresent), false},
			"no one verified":           {flag(0, userVerified), false},
			"backed up, not eligible":   {flag(backedUp, 0), true},
			"credential data":           {flag(hasCredential, 0), false},
			"extensions, but none":      {flag(hasExtensions, 0), false},
			"bytes left over":           {func(p *parts) { p.more = []byte{0} }, false},
			"signed by another":         {func(p *parts) { p.another = stranger }, false},
			"other data":                {after(func(a *assertion) { a.AuthenticatorData[leastData-1]++ }), false},
			"data cut":                  {after(func(a *assertion) { a.AuthenticatorData = a.AuthenticatorData[:leastData-1] }), false},
			"other words of the page":   {after(func(a *assertion) { a.ClientData = append(a.ClientData, ' ') }), false},
			"words that are no JSON":    {after(func(a *assertion) { a.ClientData = a.ClientData[1:] }), false},
			"signature":                 {after(func(a *assertion) { a.Signature[len(a.Signature)-1] ^= 1 }), false},
			"signature cut":             {after(func(a *assertion) { a.Signature = a.Signature[:len(a.Signature)-1] }), false},
			"no signature":              {after(func(a *assertion) { a.Signature = nil }), false},
			"signature and more":        {after(func(a *assertion) { a.Signature = append(a.Signature, 0) }), false},
			"another credential":        {after(func(a *assertion) { a.Credential[0]++ }), true},
			"no credential":             {after(func(a *assertion) { a.Credential = nil }), false},
			"backed up":                 {flag(backedUp|backupEligible, 0), false},
			"extensions":                {func(p *parts) { p.flags |= hasExtensions; p.more = []byte{0xa0} }, false},
			"a member of later years":   {member("later", map[string]any{"a": 1}), false},
			"without crossOrigin":       {func(p *parts) { delete(p.client, "crossOrigin") }, false},
			"counts from the beginning": {func(p *parts) { p.count = 0 }, true},
			"counts no further":         {func(p *parts) { p.count = 2 }, true},
		}
		good := []string{"as it is", "backed up", "extensions", "a member of later years", "without crossOrigin"}
		for name, tt := range tests {
			t.Run(algorithm+"/"+name, func(t *testing.T) {
				w, a := newWorld(t), *own
				anchor := w.enrolPasskey(&a) // its counter is 2 afterwards
				var last assertion
				var digest Digest
				err := func() error {
					f := require(w.Gate, NewClaim("approve tool", "a", "b"))
					s, _ := asked(t, f(WithProof(t.Context(), &Proof{For: request})))
					digest, last = s.Digest(), a.assert(t, s.Digest(), tt.change)
					return f(WithProof(t.Context(), &Proof{For: request, Text: SignedStatement{s, last.toSignature()}.HeaderValue()}))
				}()
				want := slices.Contains(good, name)
				if (err == nil) != want || w.IsConfirmed(NewClaim("approve tool", "a", "b")) != want {
					t.Errorf("accepted: %t, with %v", err == nil, err)
				}
				if err != nil && problem.From(err).Code != problem.PresenceRequired {
					t.Errorf("rejected with %v", err)
				}
				if other := oracle(t, anchor, digest, last); (other == nil) != (want || tt.laxer) {
					t.Errorf("the other implementation: %v", other)
				}
			})
		}
	}
}

// oracle verifies an assertion with go-webauthn, an independent implementation.
func oracle(t *testing.T, anchor Anchor, d Digest, a assertion) error {
	t.Helper()
	public, err := x509.ParsePKIXPublicKey(anchor.Key)
	if err != nil {
		t.Fatal(err)
	}
	var key any
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		key = map[int]any{1: 2, 3: int(webauthncose.AlgES256), -1: 1, -2: point[1:33], -3: point[33:]}
	case ed25519.PublicKey:
		key = map[int]any{1: 1, 3: int(webauthncose.AlgEdDSA), -1: 6, -2: []byte(k)}
	case *rsa.PublicKey:
		key = map[int]any{1: 3, 3: int(webauthncose.AlgRS256), -1: k.N.Bytes(), -2: []byte{1, 0, 1}}
	}
	cose, err := webauthncbor.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	name := base64.RawURLEncoding.EncodeToString(a.Credential)
	text, err := json.Marshal(map[string]any{"id": name, "rawId": name, "type": "public-key", "response": map[string]any{
		"clientDataJSON": protocol.URLEncodedBase64(a.ClientData), "authenticatorData": protocol.URLEncodedBase64(a.AuthenticatorData), "signature": protocol.URLEncodedBase64(a.Signature),
	}})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(text)
	if err != nil {
		return err
	}
	return parsed.Verify(base64.RawURLEncoding.EncodeToString(d[:]), relyingParty, "", []string{anchor.Origin}, nil, nil, protocol.TopOriginExplicitVerificationMode,
		false, true, true, cose, protocol.SignaturePolicy{})
}

// TestAuthenticatorCounters covers signature counters: an authenticator without a counter is accepted, and one with a
// counter must always increase it.
func TestAuthenticatorCounters(t *testing.T) {
	w, a := newWorld(t), newAuthenticator(t, "ES256")
	still := func(p *parts) { p.count = 0 }
	anchor := a.anchor(t, w)
	if err := w.doPasskey(a, still, func(ctx context.Context) error { return w.SetAnchor(ctx, anchor) }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := w.doPasskey(a, still, require(w.Gate, NewClaim("approve tool", name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.doPasskey(a, func(p *parts) { p.count = 7 }, require(w.Gate, NewClaim("approve tool", "c"))); err != nil {
		t.Fatal(err)
	}
	w.restart()
	refusedWith(t, w.doPasskey(a, func(p *parts) { p.count = 7 }, require(w.Gate, NewClaim("approve tool", "d"))), "went backwards")
}

// TestPasskeyAndPassphrase checks that a passkey can follow a passphrase that signed it, and vice versa.
func TestPasskeyAndPassphrase(t *testing.T) {
	w, a := newWorld(t), newAuthenticator(t, "EdDSA")
	_, key := w.enrol()
	next := a.anchor(t, w)
	set := func(ctx context.Context) error { return w.SetAnchor(ctx, next) }
	s, _ := asked(t, set(WithProof(t.Context(), &Proof{For: request})))
	self := SignedStatement{s, a.assert(t, s.Digest(), nil).toSignature()}
	refusedWith(t, set(WithProof(t.Context(), &Proof{For: request, Text: self.HeaderValue()})), "not from the anchor")
	if err := w.do(key, set); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, w.do(key, require(w.Gate, NewClaim("approve tool", "a"))), "not signed with a passkey")
	if err := w.doPasskey(a, nil, require(w.Gate, NewClaim("approve tool", "a"))); err != nil {
		t.Fatal(err)
	}
	back, key, err := newPassphraseAnchor([]byte(secret), w.HeadFingerprint(), w.now, cheap)
	if err != nil {
		t.Fatal(err)
	}
	refusedWith(t, w.do(key, func(ctx context.Context) error { return w.SetAnchor(ctx, back) }), "not signed with a passkey")
	if err := w.doPasskey(a, nil, func(ctx context.Context) error { return w.SetAnchor(ctx, back) }); err != nil {
		t.Fatal(err)
	}
	if err := w.do(key, require(w.Gate, NewClaim("approve tool", "b"))); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if s := w.standing(); s.Void != "" || len(s.Bad) != 0 || !w.IsConfirmed(NewClaim("approve tool", "a")) || !w.IsConfirmed(NewClaim("approve tool", "b")) {
		t.Errorf("unexpected status: %+v", s)
	}
}

// TestAnchorOfAPasskey checks that another passkey has another fingerprint, and that an invalid one is not parsed.
func TestAnchorOfAPasskey(t *testing.T) {
	w, a := newWorld(t), newAuthenticator(t, "ES256")
	good := a.anchor(t, w)
	for name, change := range map[string]func(*Anchor){
		"credential": func(a *Anchor) { a.Credential = []byte("another") },
		"origin":     func(a *Anchor) { a.Origin = PageOrigin("8081") },
		"key":        func(a *Anchor) { a.Key = append(bytes.Clone(a.Key), 0) },
		"kind":       func(a *Anchor) { a.Kind = Passphrase },
	} {
		other := good
		if change(&other); other.Fingerprint() == good.Fingerprint() {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
	long := newAuthenticator(t, "ES384").anchor(t, w)
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(short.Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Anchor){
		"no credential":       func(a *Anchor) { a.Credential = nil },
		"a long credential":   func(a *Anchor) { a.Credential = make([]byte, maxCredential+1) },
		"no key":              func(a *Anchor) { a.Key = nil },
		"a key and more":      func(a *Anchor) { a.Key = append(bytes.Clone(a.Key), 0) },
		"another curve":       func(a *Anchor) { a.Key = long.Key },
		"a short RSA key":     func(a *Anchor) { a.Key = spki },
		"an address":          func(a *Anchor) { a.Origin = "http://127.0.0.1:8080" },
		"another host":        func(a *Anchor) { a.Origin = "http://localhost.example:8080" },
		"TLS":                 func(a *Anchor) { a.Origin = "https://localhost:8080" },
		"a path":              func(a *Anchor) { a.Origin += "/" },
		"a user":              func(a *Anchor) { a.Origin = "http://a@localhost:8080" },
		"a port that is none": func(a *Anchor) { a.Origin = "http://localhost:808000" },
		"a port in zeros":     func(a *Anchor) { a.Origin = "http://localhost:08080" },
		"the usual port":      func(a *Anchor) { a.Origin = "http://localhost:80" },
		"capitals":            func(a *Anchor) { a.Origin = "http://LOCALHOST:8080" },
		"no origin":           func(a *Anchor) { a.Origin = "" },
	} {
		bad := good
		change(&bad)
		text, err := bad.StoredJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseAnchor(text); err == nil {
			t.Errorf("%s: the anchor is parsed", name)
		}
		if _, ok := bad.newVerifier().(rejectingVerifier); !ok {
			t.Errorf("%s: the anchor verifies a statement", name)
		}
	}
	good.Origin = PageOrigin("80")
	if text, err := good.StoredJSON(); err != nil || good.Origin != "http://localhost" {
		t.Fatal(err)
	} else if _, err := ParseAnchor(text); err != nil {
		t.Errorf("the default port: %v", err)
	}
}

func FuzzParseAssertion(f *testing.F) {
	f.Add("YQ.YQ.e30.YQ")
	f.Add("...")
	f.Add("YQ.YQ.e30.YQ.YQ")
	f.Add("YQ\n.YQ.e30.YQ")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAssertion([]byte(text))
		if err == nil && (string(a.toSignature()) != text || strings.Count(text, ".") != 3) {
			t.Errorf("%q is parsed as %q", text, a.toSignature())
		}
		signatureCounter([]byte(text))
		_ = checkAuthenticatorData(a.AuthenticatorData)
		_ = passkeyVerifier{}.checkClientData(Digest{}, a.ClientData)
	})
}
