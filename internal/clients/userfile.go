package clients

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/internal/problem"
)

// maxSize is the maximum size of a file, in bytes.
const maxSize = 16 << 20

// UserFile is the state of a file when it was read.
type UserFile struct {
	Path   string
	Target string // target of Path if it is a link; otherwise Path
	Text   []byte
	Exists bool
	Mode   fs.FileMode // permissions; a new file gets 0600

	roots []string
}

// ReadUserFile reads a file. A missing file is not an error. A link must point below one of the roots. The error is a
// *problem.Problem.
func ReadUserFile(path string, roots ...string) (UserFile, error) {
	f := UserFile{Path: path, Target: path, Mode: 0o600, roots: roots}
	target, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return f, newRefusedError(path, "is a link to a file that does not exist", "Fix the link, or remove it.")
		}
		return f, f.checkFolderOwner()
	case err != nil:
		return f, newReadError(path, err)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		f.Target = target
		if !isBelowAny(target, roots) {
			return f, newRefusedError(path, "is a link to "+target+", which is in no directory of the client", "Edit that file manually.")
		}
	}
	return f, f.readTarget()
}

// readTarget reads the target of the path.
func (f *UserFile) readTarget() error {
	opened, err := openRegular(f.Target)
	if err != nil {
		return newReadError(f.Path, err)
	}
	defer opened.Close()
	info, err := opened.Stat()
	switch {
	case err != nil:
		return newReadError(f.Path, err)
	case !info.Mode().IsRegular():
		return newRefusedError(f.Path, "is not a regular file", "Replace it with the client's own file.")
	case !ownedByUser(info):
		return newRefusedError(f.Path, "belongs to another user", "Change it as that user.")
	case info.Size() > maxSize:
		return problem.Newf(problem.TooLarge, "%s is larger than %d bytes.", f.Path, maxSize).WithHint("Change it by hand.")
	}
	f.Exists, f.Mode = true, info.Mode().Perm()
	if f.Text, err = io.ReadAll(io.LimitReader(opened, maxSize+1)); err != nil {
		return newReadError(f.Path, err)
	}
	return nil
}

// checkFolderOwner returns an error if a new file would be created in a directory that does not belong to the user.
func (f *UserFile) checkFolderOwner() error {
	dir := filepath.Dir(f.Path)
	for {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir:
			dir = filepath.Dir(dir)
			continue
		case err != nil:
			return newReadError(f.Path, err)
		case !info.IsDir():
			return newRefusedError(f.Path, "cannot be created: "+dir+" is not a directory", "Check that path.")
		case !ownedByUser(info):
			return newRefusedError(f.Path, "would be created in "+dir+", which belongs to another user", "Run the command as that user, without sudo.")
		}
		return nil
	}
}

// isBelowAny reports whether a path is in one of the directories, following links.
func isBelowAny(path string, roots []string) bool {
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
		if rel, err := filepath.Rel(root, path); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// isUnchanged reports whether the file is the same as when it was read.
func (f UserFile) isUnchanged() (bool, error) {
	now, err := ReadUserFile(f.Path, f.roots...)
	if err != nil {
		return false, err
	}
	return now.Target == f.Target && now.Exists == f.Exists && sha256.Sum256(now.Text) == sha256.Sum256(f.Text), nil
}

func newRefusedError(path, what, hint string) error {
	return problem.New(problem.Conflict, path+" "+what+".", hint)
}

func newReadError(path string, err error) error {
	var on *fs.PathError
	if errors.As(err, &on) {
		err = on.Err // without the path, because the message contains it already
	}
	return problem.Newf(problem.Conflict, "%s cannot be read: %v.", path, err).WithHint("Check its permissions.").Because(err)
}
