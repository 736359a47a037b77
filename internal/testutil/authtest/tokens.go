package authtest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// Token is an access token to issue. What is not set is right.
type Token struct {
	Subject   string
	Audience  []string
	Scope     string
	Claims    map[string]any // replace others; nil removes a claim
	Type      string         // of the header; "" is at+jwt
	Algorithm jose.SignatureAlgorithm
	Key       any    // signs the token
	KeyID     string // names the key
}

// tokenRequest is the request for a token that IssueToken stores.
type tokenRequest struct{ Token }

func (r tokenRequest) GetSubject() string    { return r.Subject }
func (r tokenRequest) GetAudience() []string { return r.Audience }
func (r tokenRequest) GetScopes() []string   { return []string{oidc.ScopeOpenID, oidc.ScopeEmail} }

// IssueToken returns an access token in the form of a JSON Web Token, valid for five minutes. The provider's userinfo
// endpoint accepts it.
func (p *Provider) IssueToken(t Token) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	id, expires, err := p.storage.CreateAccessToken(context.Background(), tokenRequest{t})
	if err != nil {
		p.t.Fatal(err)
	}
	now := time.Now()
	claims := map[string]any{"iss": p.URL, "sub": t.Subject, "aud": t.Audience, "scope": t.Scope, "jti": id, "iat": now.Unix(), "nbf": now.Unix(), "exp": expires.Unix(), "client_id": "client-1"}
	maps.Copy(claims, t.Claims)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	own := p.keys[len(p.keys)-1]
	if t.Algorithm == "" {
		t.Algorithm = jose.RS256
	}
	if t.Key == nil {
		t.Key = own.key
	}
	if t.KeyID == "" {
		t.KeyID = own.id
	}
	if t.Type == "" {
		t.Type = "at+jwt"
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: t.Algorithm, Key: jose.JSONWebKey{Key: t.Key, KeyID: t.KeyID}}, (&jose.SignerOptions{}).WithType(jose.ContentType(t.Type)))
	if err != nil {
		p.t.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		p.t.Fatal(err)
	}
	p.issued[text] = id
	return text
}

// RevokeToken ends a token of IssueToken.
func (p *Provider) RevokeToken(text, subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.storage.RevokeToken(context.Background(), p.issued[text], subject, ""); err != nil {
		p.t.Error(err)
	}
}

// SetGroups sets the groups of a user. They are in the answers of the userinfo endpoint.
func (p *Provider) SetGroups(subject string, groups ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups[subject] = groups
}

// OmitEmptyGroups makes the provider omit the groups of a user who has none.
func (p *Provider) OmitEmptyGroups() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.omitsEmpty = true
}

// RotateKey makes the provider sign with a new key. The key of before is withdrawn unless keep is set.
func (p *Provider) RotateKey(keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !keep {
		p.keys = nil
	}
	p.addKey()
}

// addKey adds a key, which signs from now on.
func (p *Provider) addKey() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		p.t.Fatal(err)
	}
	p.keys = append(p.keys, &signingKey{id: "key-" + rand.Text()[:8], key: key})
}

// PublicKey returns the public key of the key that signs.
func (p *Provider) PublicKey() *rsa.PublicKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &p.keys[len(p.keys)-1].key.PublicKey
}

// signingKey implements op.SigningKey; publicKey implements op.Key.
type signingKey struct {
	id  string
	key *rsa.PrivateKey
}

func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *signingKey) Key() any                                    { return k.key }
func (k *signingKey) ID() string                                  { return k.id }

type publicKey struct{ *signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.key.PublicKey }

// SigningKey implements op.Storage.
func (s clientStore) SigningKey(context.Context) (op.SigningKey, error) {
	return s.p.keys[len(s.p.keys)-1], nil
}

// KeySet implements op.Storage.
func (s clientStore) KeySet(context.Context) (all []op.Key, err error) {
	for _, k := range s.p.keys {
		all = append(all, publicKey{k})
	}
	return all, nil
}

// SetUserinfoFromToken implements op.Storage.
func (s clientStore) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	if err := s.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin); err != nil {
		return err
	}
	if groups := s.p.groups[subject]; len(groups) > 0 || !s.p.omitsEmpty {
		info.AppendClaims("groups", groups)
	}
	return nil
}

// SetIntrospectionFromToken implements op.Storage.
func (s clientStore) SetIntrospectionFromToken(ctx context.Context, answer *oidc.IntrospectionResponse, tokenID, subject, clientID string) error {
	if err := s.Storage.SetIntrospectionFromToken(ctx, answer, tokenID, subject, clientID); err != nil {
		return err
	}
	if groups := s.p.groups[subject]; len(groups) > 0 || !s.p.omitsEmpty {
		answer.Claims = map[string]any{"groups": groups}
	}
	return nil
}

// AddClient adds a client that may introspect tokens whose audience includes it.
func (p *Provider) AddClient(id, secret string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[id] = storage.WebClient(id, secret)
}

// userStore has a user for each subject that begins with "u-", with the verified address SUBJECT@example.com.
type userStore struct{ storage.UserStore }

// GetUserByID implements storage.UserStore.
func (s userStore) GetUserByID(id string) *storage.User {
	if strings.HasPrefix(id, "u-") {
		return &storage.User{ID: id, Username: id, Email: id + "@example.com", EmailVerified: true}
	}
	return s.UserStore.GetUserByID(id)
}
