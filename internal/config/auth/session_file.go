package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"mcpproxy/internal/ondisk"
)

// SessionsFile is the file in the data directory with the sessions of the web UI, so that a restart does not sign
// users out. It contains hashes, and a MAC under the API key, so a new key invalidates all sessions.
const SessionsFile = "ui_sessions"

// saveInterval is the maximum age of an unsaved last use of a session.
const saveInterval = 5 * time.Minute

// sessionFileData is the content of the file.
type sessionFileData struct {
	Sessions json.RawMessage `json:"sessions"`
	MAC      string          `json:"mac"`
}

// storedSession is a session in the file.
type storedSession struct {
	Cookie    string    `json:"cookie"` // hashes in hexadecimal
	Value     string    `json:"value"`
	IdleUntil time.Time `json:"idle"`
	ExpiresAt time.Time `json:"whole"`
}

// sessionFile stores the sessions in a file. The zero value stores nothing.
type sessionFile struct {
	path   string
	key    [sha256.Size]byte
	logger *slog.Logger
	at     time.Time // last write
}

// restoreSessions loads the sessions from the file. It ignores a file that was modified or has a MAC under another
// key.
func (s *WebUISignIns) restoreSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := readAtMost(s.file.path, maxSessionFile)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.file.logger.Warn("the sessions of the web UI cannot be read: all browsers must sign in again", "error", err)
		}
		return
	}
	for _, kept := range s.file.verifyAndParseSessions(text) {
		if one := kept.toSession(time.Now()); one != nil && len(s.sessions) < maxSessions {
			one.timer = time.AfterFunc(time.Until(one.endTime()), func() { s.endIfExpired(one) })
			s.sessions = append(s.sessions, one)
		}
	}
}

// maxSessionFile is an upper bound on the file's size.
const maxSessionFile = maxSessions << 10

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// verifyAndParseSessions returns the sessions in a file; nil if its MAC is wrong.
func (k *sessionFile) verifyAndParseSessions(text []byte) (all []storedSession) {
	var file sessionFileData
	if json.Unmarshal(text, &file) != nil {
		return nil
	}
	if mac, err := hex.DecodeString(file.MAC); err != nil || !hmac.Equal(mac, k.computeMAC(file.Sessions)) {
		return nil
	}
	if json.Unmarshal(file.Sessions, &all) != nil {
		return nil
	}
	return all
}

func (k *sessionFile) computeMAC(text []byte) []byte {
	mac := hmac.New(sha256.New, k.key[:])
	mac.Write([]byte("mcpproxy sessions of the web UI\n"))
	mac.Write(text)
	return mac.Sum(nil)
}

// toSession returns the session; nil if it has ended. A session that would last longer than a new one was stored
// while the clock was wrong, and counts as ended.
func (k *storedSession) toSession(now time.Time) *webUISession {
	one := &webUISession{idleUntil: k.IdleUntil, expiresAt: k.ExpiresAt, requests: requestCancelSet{}}
	n, err := hex.Decode(one.cookie[:], []byte(k.Cookie)[:min(len(k.Cookie), 2*sha256.Size)])
	m, err2 := hex.Decode(one.value[:], []byte(k.Value)[:min(len(k.Value), 2*sha256.Size)])
	whole := err == nil && err2 == nil && n == sha256.Size && m == sha256.Size
	if !whole || one.isOver() || one.idleUntil.Sub(now) > idleLife || one.expiresAt.Sub(now) > maxLife {
		return nil
	}
	return one
}

// saveSessions writes the file. The caller holds the lock. If the write fails, it deletes the file, so that ended
// sessions do not become valid again.
func (s *WebUISignIns) saveSessions() {
	if s.file.path == "" {
		return
	}
	s.file.at = time.Now()
	err := s.file.writeSessions(s.sessions)
	if err == nil {
		return
	}
	if gone := os.Remove(s.file.path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	s.file.logger.Warn("the sessions of the web UI cannot be stored for a restart", "error", err)
}

func (k *sessionFile) writeSessions(sessions []*webUISession) error {
	all := make([]storedSession, 0, len(sessions))
	for _, one := range sessions {
		all = append(all, storedSession{hex.EncodeToString(one.cookie[:]), hex.EncodeToString(one.value[:]), one.idleUntil.UTC(), one.expiresAt.UTC()})
	}
	list, err := json.Marshal(all)
	if err != nil {
		return err
	}
	text, err := json.Marshal(sessionFileData{list, hex.EncodeToString(k.computeMAC(list))})
	if err != nil {
		return err
	}
	return ondisk.ReplaceFile(k.path, append(text, '\n'))
}

// saveSessionsIfDue saves the last use of a session if saveInterval has passed. The caller holds the lock.
func (s *WebUISignIns) saveSessionsIfDue() {
	if s.file.path != "" && time.Since(s.file.at) > saveInterval {
		s.saveSessions()
	}
}

// NewAuthenticatorWithSessionFile is NewAuthenticator with the sessions of the web UI stored in a data directory.
func NewAuthenticatorWithSessionFile(key string, tokens *AgentTokens, dir string, logger *slog.Logger) *Authenticator {
	a := NewAuthenticator(key, tokens)
	if a.hasKey {
		a.SignIns.file = sessionFile{path: filepath.Join(dir, SessionsFile), key: a.hash, logger: logger}
		a.SignIns.restoreSessions()
	}
	return a
}
