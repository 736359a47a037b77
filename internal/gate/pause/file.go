package pause

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"mcpproxy/internal/ondisk"
)

// File stores the state in a file, for a data directory that one process uses. It does not depend on the database, so
// that a lost database does not end a pause. A missing file means that calls were never paused.
type File struct{ Path string }

// LoadPause implements Store.
func (f File) LoadPause(context.Context) (s State, err error) {
	text, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	var stored struct {
		Paused *bool `json:"paused"`
		State
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&stored); err != nil || stored.Paused == nil {
		return State{}, fmt.Errorf("%s is damaged, so it is unknown whether calls are paused", f.Path)
	}
	stored.State.Paused = *stored.Paused
	return stored.State, nil
}

// SavePause implements Store.
func (f File) SavePause(_ context.Context, s State) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return ondisk.ReplaceFile(f.Path, append(text, '\n'))
}
