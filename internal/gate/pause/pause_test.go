package pause

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"mcpproxy/internal/problem"
)

// memory is a store whose operations can fail, or wait.
type memory struct {
	state    State
	err      error
	onLoaded func() // called after a state was loaded, and before it is returned
}

func (m *memory) LoadPause(context.Context) (State, error) {
	s, err := m.state, m.err
	if m.onLoaded != nil {
		m.onLoaded()
	}
	return s, err
}

func (m *memory) SavePause(_ context.Context, s State) error {
	if m.err == nil {
		m.state = s
	}
	return m.err
}

func enters(t *testing.T, s *Switch) bool {
	t.Helper()
	_, ticket, p := s.Enter(t.Context())
	ticket.Leave()
	if p != nil && p.Code != problem.CallsPaused {
		t.Errorf("%v", p)
	}
	return p == nil
}

// TestUnknownStateStopsCalls checks that every call is rejected before the state was read, and after an announced
// change that could not be read.
func TestUnknownStateStopsCalls(t *testing.T) {
	m := &memory{err: errors.New("down")}
	s := New(m, func() {})
	if s.Problem() == nil || s.Reload(t.Context(), false) == nil || s.Problem() == nil {
		t.Error("an unknown state lets calls pass")
	}
	m.err = nil
	if err := s.Reload(t.Context(), false); err != nil || !enters(t, s) {
		t.Error("a known state stops calls")
	}
	m.err = errors.New("down")
	if s.Reload(t.Context(), false) == nil || !enters(t, s) {
		t.Error("a store that cannot be read for a while stops calls")
	}
	if s.Reload(t.Context(), true) == nil || enters(t, s) {
		t.Error("an announced change that cannot be read lets calls pass")
	}
}

// TestUnstoredPauseHolds checks that a pause that cannot be stored stays in effect, even if the store has another
// state, until it is stored.
func TestUnstoredPauseHolds(t *testing.T) {
	m := &memory{}
	s := New(m, func() {})
	if err := s.Reload(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	m.err = errors.New("down")
	if _, err := s.Pause(t.Context(), State{Reason: "why"}); err == nil || enters(t, s) {
		t.Errorf("%v", err)
	}
	if err := s.Resume(t.Context(), State{}); err == nil || enters(t, s) {
		t.Errorf("a resume that was not stored lets calls pass: %v", err)
	}
	m.err = nil
	if err := s.Reload(t.Context(), false); err != nil || enters(t, s) || !m.state.Paused || m.state.Reason != "why" {
		t.Errorf("%v, stored %+v", err, m.state)
	}
	if err := s.Resume(t.Context(), State{By: "admin"}); err != nil || !enters(t, s) || m.state.Paused {
		t.Errorf("%v, stored %+v", err, m.state)
	}
}

// TestPauseWinsAgainstReload checks that a pause that begins while another state is read stays in effect.
func TestPauseWinsAgainstReload(t *testing.T) {
	m := &memory{}
	s := New(m, func() {})
	done := make(chan error, 1)
	m.onLoaded = func() {
		m.onLoaded = nil
		go func() {
			_, err := s.Pause(context.Background(), State{})
			done <- err
		}()
		for state, _ := s.Current(); !state.Paused; state, _ = s.Current() {
			runtime.Gosched() // until the pause is in effect; it is stored after the reload
		}
	}
	if err := s.Reload(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || enters(t, s) || !m.state.Paused {
		t.Errorf("%v, %+v", err, m.state)
	}
}

// TestFile: the file keeps the state, its absence means that calls were never paused, and anything unreadable is an error.
func TestFile(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "pause.json")}
	if s, err := f.LoadPause(t.Context()); err != nil || s.Paused {
		t.Errorf("%+v, %v", s, err)
	}
	want := State{Paused: true, Reason: "why", By: "admin", Via: "cli", At: time.Now().UTC().Round(0)}
	if err := f.SavePause(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if s, err := f.LoadPause(t.Context()); err != nil || s != want {
		t.Errorf("%+v, %v, want %+v", s, err, want)
	}
	for _, text := range []string{"", "{}", `{"paused":"no"}`, `{"paused":fal`} {
		if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := f.LoadPause(t.Context()); err == nil {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}
