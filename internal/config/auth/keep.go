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

// SessionsFile is the name of the file in the data directory that has the sessions of the
// web UI, so that a restart signs nobody out. It has hashes, and a MAC under the API key: with
// another key no session is good.
const SessionsFile = "ui_sessions"

// keepEvery is how old the time of the last use of a session may be in the file.
const keepEvery = 5 * time.Minute

// keptSessions is the file.
type keptSessions struct {
	Sessions json.RawMessage `json:"sessions"`
	MAC      string          `json:"mac"`
}

// keptSession is a session in the file.
type keptSession struct {
	Cookie string    `json:"cookie"` // hashes, in hexadecimal digits
	Value  string    `json:"value"`
	Idle   time.Time `json:"idle"`
	Whole  time.Time `json:"whole"`
}

// keeper keeps the sessions in a file. The zero value keeps nothing.
type keeper struct {
	path   string
	key    [sha256.Size]byte
	logger *slog.Logger
	at     time.Time // when the file was last written
}

// restore reads the sessions that the file has. A file that is not as it was written, or was
// written under another key, has none.
func (s *SignIns) restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := readAtMost(s.keep.path, maxKept)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.keep.logger.Warn("the sessions of the web UI cannot be read: every page has to sign in again", "error", err)
		}
		return
	}
	for _, kept := range s.keep.read(text) {
		if one := kept.session(time.Now()); one != nil && len(s.sessions) < maxSessions {
			one.timer = time.AfterFunc(time.Until(one.ends()), func() { s.tick(one) })
			s.sessions = append(s.sessions, one)
		}
	}
}

// maxKept is more than the file can have: at most a few hundred bytes for each session.
const maxKept = maxSessions << 10

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

func (k *keeper) read(text []byte) (all []keptSession) {
	var file keptSessions
	if json.Unmarshal(text, &file) != nil {
		return nil
	}
	if mac, err := hex.DecodeString(file.MAC); err != nil || !hmac.Equal(mac, k.mac(file.Sessions)) {
		return nil
	}
	if json.Unmarshal(file.Sessions, &all) != nil {
		return nil
	}
	return all
}

func (k *keeper) mac(text []byte) []byte {
	mac := hmac.New(sha256.New, k.key[:])
	mac.Write([]byte("mcpproxy sessions of the web UI\n"))
	mac.Write(text)
	return mac.Sum(nil)
}

// session is the session as it goes on; nil when it is over. One that would last longer than a
// new one was kept under another clock, and is over, too.
func (k *keptSession) session(now time.Time) *session {
	one := &session{idle: k.Idle, whole: k.Whole, requests: requests{}}
	n, err := hex.Decode(one.cookie[:], []byte(k.Cookie)[:min(len(k.Cookie), 2*sha256.Size)])
	m, err2 := hex.Decode(one.value[:], []byte(k.Value)[:min(len(k.Value), 2*sha256.Size)])
	whole := err == nil && err2 == nil && n == sha256.Size && m == sha256.Size
	if !whole || one.over() || one.idle.Sub(now) > idleLife || one.whole.Sub(now) > wholeLife {
		return nil
	}
	return one
}

// save writes the file. It is called with mu. What cannot be written must not bring back a
// session that has ended: then the file goes.
func (s *SignIns) save() {
	if s.keep.path == "" {
		return
	}
	s.keep.at = time.Now()
	err := s.keep.write(s.sessions)
	if err == nil {
		return
	}
	if gone := os.Remove(s.keep.path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	s.keep.logger.Warn("the sessions of the web UI cannot be kept over a restart", "error", err)
}

func (k *keeper) write(sessions []*session) error {
	all := make([]keptSession, 0, len(sessions))
	for _, one := range sessions {
		all = append(all, keptSession{hex.EncodeToString(one.cookie[:]), hex.EncodeToString(one.value[:]), one.idle.UTC(), one.whole.UTC()})
	}
	list, err := json.Marshal(all)
	if err != nil {
		return err
	}
	text, err := json.Marshal(keptSessions{list, hex.EncodeToString(k.mac(list))})
	if err != nil {
		return err
	}
	return ondisk.Replace(k.path, append(text, '\n'))
}

// used notes that a session was used, in the file now and then. It is called with mu.
func (s *SignIns) used() {
	if s.keep.path != "" && time.Since(s.keep.at) > keepEvery {
		s.save()
	}
}

// NewKept is New for an Authenticator whose sessions of the web UI are kept in a data directory.
func NewKept(key string, tokens *Tokens, dir string, logger *slog.Logger) *Authenticator {
	a := New(key, tokens)
	if a.hasKey {
		a.SignIns.keep = keeper{path: filepath.Join(dir, SessionsFile), key: a.hash, logger: logger}
		a.SignIns.restore()
	}
	return a
}
