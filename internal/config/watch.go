package config

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Run watches the file and applies it to the components until ctx ends.
//
// It watches the file, and its directory only while the file does not exist. The directory is usually the data
// directory, where each activity record would wake the watch. When the file is replaced, its watch ends, and Run sets
// a new one. In addition, Run polls the file for changes that no watch reports: network drives, moved links, and
// systems without free watches.
func (l *LiveConfig) Run(ctx context.Context, components ...ReloadableComponent) {
	l.setComponents(components)
	w := newFileWatch(l.path)
	defer w.close()
	rest := time.NewTimer(l.settleTime)
	rest.Stop()
	defer rest.Stop()
	look := time.NewTicker(l.pollInterval)
	defer look.Stop()
	w.setWatch()
	last := statFile(l.path) // before the read, so that no later change is missed
	var busySince time.Time
	if isEmptied(last) {
		busySince = time.Now()
		rest.Reset(l.settleTime)
	} else {
		l.reloadIfChanged() // changes since OpenLiveConfig
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.events():
			if !ok || !w.isAboutFile(event) {
				continue
			}
		case <-w.errors():
			// Events may have been lost: check the file as after an event.
		case <-look.C:
			if isUnchangedFile(last, statFile(l.path)) {
				continue
			}
		case <-rest.C:
			if isEmptied(statFile(l.path)) && time.Since(busySince) < 10*l.settleTime {
				rest.Reset(l.settleTime)
				continue
			}
			busySince = time.Time{}
			w.setWatch()
			last = statFile(l.path)
			l.reloadIfChanged()
			continue
		}
		// Wait for a file that is being written to settle, for a limited time.
		if busySince.IsZero() {
			busySince = time.Now()
		}
		if time.Since(busySince) < 10*l.settleTime {
			rest.Reset(l.settleTime)
		}
	}
}

// isEmptied reports whether the file exists and is empty. Run then waits, because many editors truncate a file before
// they write it.
func isEmptied(info os.FileInfo) bool { return info != nil && info.Size() == 0 }

// statFile returns the file's info, which is used to detect changes; nil if there is no file.
func statFile(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

func isUnchangedFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime())
}

// fileWatch watches one file with the system's file notifications. It does nothing if they are not available.
type fileWatch struct {
	path    string
	watcher *fsnotify.Watcher // nil: not available
	on      string            // the watched path
}

func newFileWatch(path string) *fileWatch {
	w := &fileWatch{path: path}
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		w.watcher = watcher
	}
	return w
}

// setWatch watches the current file, or its directory.
func (w *fileWatch) setWatch() {
	if w.watcher == nil {
		return
	}
	if w.on != "" {
		_ = w.watcher.Remove(w.on) // the watch may have ended with its file
		w.on = ""
	}
	for _, on := range []string{w.path, filepath.Dir(w.path)} {
		if w.watcher.Add(on) == nil {
			w.on = on
			return
		}
	}
}

// isAboutFile reports whether the event is about the file.
func (w *fileWatch) isAboutFile(e fsnotify.Event) bool {
	return filepath.Base(e.Name) == filepath.Base(w.path)
}

func (w *fileWatch) events() <-chan fsnotify.Event {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Events
}

func (w *fileWatch) errors() <-chan error {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Errors
}

func (w *fileWatch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
}
