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
// What is watched is the file, and its directory only as long as there is no
// file: the directory is usually that of the data too, and each record of the
// log would wake the watch. A file that is replaced ends its watch, which is
// then set again. Besides, Run looks at the file now and then, for what no
// watch tells: network drives, links that are moved elsewhere, and systems
// without watches to spare.
func (l *Live) Run(ctx context.Context, components ...Component) {
	l.follow(components)
	w := newWatch(l.path)
	defer w.close()
	rest := time.NewTimer(l.settle)
	rest.Stop()
	defer rest.Stop()
	look := time.NewTicker(l.poll)
	defer look.Stop()
	w.set()
	last := stat(l.path) // before the file is read: a change in between is seen then
	var busySince time.Time
	if emptied(last) {
		busySince = time.Now()
		rest.Reset(l.settle)
	} else {
		l.check() // what happened since Open
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.events():
			if !ok || !w.concerns(event) {
				continue
			}
		case <-w.errors():
			// Events may be lost: the file is looked at as after an event.
		case <-look.C:
			if unchanged(last, stat(l.path)) {
				continue
			}
		case <-rest.C:
			if emptied(stat(l.path)) && time.Since(busySince) < 10*l.settle {
				rest.Reset(l.settle)
				continue
			}
			busySince = time.Time{}
			w.set()
			last = stat(l.path)
			l.check()
			continue
		}
		// A file that is being written is left to come to rest, but not for
		// ever.
		if busySince.IsZero() {
			busySince = time.Now()
		}
		if time.Since(busySince) < 10*l.settle {
			rest.Reset(l.settle)
		}
	}
}

// emptied reports whether the file is there and empty: many editors empty it
// before they write it, so it is waited for what comes.
func emptied(info os.FileInfo) bool { return info != nil && info.Size() == 0 }

// stat returns what tells one state of the file from another, nil without a
// file.
func stat(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

func unchanged(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime())
}

// watch follows one file with what the system offers, or does nothing where
// the system offers nothing.
type watch struct {
	path    string
	watcher *fsnotify.Watcher // nil: none could be had
	on      string            // what is watched
}

func newWatch(path string) *watch {
	w := &watch{path: path}
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		w.watcher = watcher
	}
	return w
}

// set puts the watch on the file that is there now, or on its directory.
func (w *watch) set() {
	if w.watcher == nil {
		return
	}
	if w.on != "" {
		_ = w.watcher.Remove(w.on) // may be gone with its file
		w.on = ""
	}
	for _, on := range []string{w.path, filepath.Dir(w.path)} {
		if w.watcher.Add(on) == nil {
			w.on = on
			return
		}
	}
}

// concerns reports whether the event is about the file.
func (w *watch) concerns(e fsnotify.Event) bool {
	return filepath.Base(e.Name) == filepath.Base(w.path)
}

func (w *watch) events() <-chan fsnotify.Event {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Events
}

func (w *watch) errors() <-chan error {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Errors
}

func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
}
