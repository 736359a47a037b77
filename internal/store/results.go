package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"mcpproxy/internal/problem"
)

// maxResultBytes limits the size of all stored results. If it is exceeded, the oldest results are deleted.
const maxResultBytes = 256 << 20

// StoredResult is a large result that read_result returns in parts.
type StoredResult struct {
	Handle string
	Actor  string
	Server string // server that returned the result
	Tool   string // tool that returned the result; "" if unknown
	// Sensitivity is the data sensitivity that the call declared, or "" if there is none.
	Sensitivity string
	Body        json.RawMessage
	Expires     time.Time
}

// ResultLife is the maximum time for which a result is kept.
const ResultLife = 2 * time.Hour

// capResultExpiry shortens the expiry of results that were stored while the clock was ahead.
func (e *sqliteEngine) capResultExpiry() error {
	latest := e.now().Add(ResultLife).UnixMicro()
	return e.writeConn.exec("UPDATE result SET expires = ? WHERE expires > ?", latest, latest)
}

// PutResult stores a result until it expires or newer results need the space. A result may contain secrets, so it is
// encrypted. The database contains neither the handle nor the key, which is derived from the handle.
func (s *commonStore) PutResult(ctx context.Context, r StoredResult) error {
	id, body, err := r.encryptBody()
	if err != nil {
		return err
	}
	jumped, now := s.clock.wallClockShift(), s.clock.steadyNow()
	return s.db.update(ctx, func(_ context.Context, t sqlTx) error {
		t.write(deleteExpiredResults, now.UnixMicro())
		evictResults(t, id, maxResultBytes-int64(len(body)))
		t.write("INSERT INTO result (handle, actor, server, tool, expires, body) VALUES (?, ?, ?, ?, ?, ?)",
			id, r.Actor, r.Server, r.Tool, r.Expires.Add(-jumped).UnixMicro(), body)
		return nil
	})
}

const deleteExpiredResults = "DELETE FROM result WHERE expires <= ?"

// sensitivities lists the levels. The first byte of a plaintext body may be an index into this list, because no JSON
// begins with such a byte.
var sensitivities = []string{"", "public", "internal", "private", "unknown"}

// encryptBody encrypts the body. It returns the ID of the result in the database, and the encrypted body.
func (r *StoredResult) encryptBody() (id string, body []byte, err error) {
	id = resultIDOfHandle(r.Handle)
	c, err := newResultCipher(r.Handle)
	if err != nil {
		return "", nil, fmt.Errorf("encrypt a result: %w", err)
	}
	plain := []byte(r.Body)
	if code := slices.Index(sensitivities, r.Sensitivity); code > 0 {
		plain = append([]byte{byte(code)}, plain...)
	}
	body = c.Seal(nil, nil, plain, []byte(id))
	if len(body) > maxResultBytes {
		return "", nil, fmt.Errorf("store a result: it has %d MB, but the limit is %d", len(body)>>20, maxResultBytes>>20)
	}
	return id, body, nil
}

// decryptBody decrypts body, and sets Body and Sensitivity.
func (r *StoredResult) decryptBody(body []byte) error {
	c, err := newResultCipher(r.Handle)
	if err == nil {
		r.Body, err = c.Open(body[:0], nil, body, []byte(resultIDOfHandle(r.Handle)))
	}
	if err != nil {
		return fmt.Errorf("decrypt a stored result: %w", err)
	}
	if len(r.Body) > 0 && int(r.Body[0]) < len(sensitivities) {
		r.Sensitivity, r.Body = sensitivities[r.Body[0]], r.Body[1:]
	}
	return nil
}

func noResultError() error {
	return problem.New(problem.NotFound, "No stored result has this handle.", "A handle is valid for two hours. Call the tool again.")
}

// evictResults deletes the result id, which is about to be replaced. It also deletes the oldest results until the
// others need at most room bytes.
func evictResults(t sqlTx, id string, room int64) {
	t.write("DELETE FROM result WHERE handle = ?", id)
	t.write(`DELETE FROM result WHERE {number|rowid} IN (SELECT n FROM (
		SELECT {number|rowid} AS n, sum(length(body)) OVER (ORDER BY {number|rowid} DESC) AS newer FROM result) AS r WHERE newer > ?)`, room)
}

// GetResult returns a stored result, or a NOT_FOUND problem.
func (s *commonStore) GetResult(ctx context.Context, handle string) (StoredResult, error) {
	r := StoredResult{Handle: handle}
	var body []byte
	var expires int64
	err := s.db.view(ctx, func(ctx context.Context, db sqlReader) error {
		found, err := db.firstRow(ctx, scanTargets{&r.Actor, &r.Server, &r.Tool, &expires, &body}, "SELECT actor, server, tool, expires, body FROM result WHERE handle = ?", resultIDOfHandle(handle))
		if err == nil && (!found || expires <= s.clock.steadyNow().UnixMicro()) {
			err = noResultError()
		}
		return err
	})
	if err != nil {
		return StoredResult{}, err
	}
	r.Expires = time.UnixMicro(expires)
	return r, r.decryptBody(body)
}

// resultIDOfHandle returns the ID in the database for a handle.
func resultIDOfHandle(handle string) string {
	id := sha256.Sum256([]byte("mcpproxy result handle " + handle))
	return hex.EncodeToString(id[:])
}

// newResultCipher returns a cipher that puts a random nonce before the ciphertext. A handle may be used again with
// another body, so the key alone must not determine the ciphertext.
func newResultCipher(handle string) (cipher.AEAD, error) {
	key := sha256.Sum256([]byte("mcpproxy result key " + handle))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
