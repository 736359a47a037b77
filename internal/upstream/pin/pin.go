// Package pin resolves the package of a launch by npx, uvx or docker to one exact version, and starts exactly that.
//
// Files:
//   - pin.go: Pin, the exact version and integrity, as text
//   - launch.go: reads the package from a command
//   - resolve.go, npm.go, pypi.go, docker.go: asks the registry about versions
//   - run.go: installs and starts a pinned package; the program runs it as a command of its own
//
// Guarantees and limits:
//   - A package whose integrity differs from the pin is not started, and no code of it runs.
//   - npm: the pin covers the package; its dependencies are resolved once, and stay as they were installed. Once installed,
//     a start needs no network.
//   - PyPI: the pin covers the files of the version. The dependencies are those that uv resolves.
//   - docker: the pin is the digest of the image, which the engine itself checks.
//   - A launch in another form (a shell, a git address, several packages) cannot be pinned.
package pin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// Kind is a kind of registry.
type Kind string

// The kinds.
const (
	NPM    Kind = "npm"
	PyPI   Kind = "pypi"
	Docker Kind = "docker"
)

// Pin is one exact version of a package. Its text is KIND:NAME@VERSION#INTEGRITY.
type Pin struct {
	Kind    Kind
	Name    string
	Version string // the tag of an image
	// Integrity is dist.integrity of npm; sha256-HEX of the sorted names and SHA-256 sums of all files of PyPI; or the
	// digest of an image.
	Integrity string
}

var errSyntax = errors.New("a pin has the form npm:NAME@VERSION#INTEGRITY, pypi:NAME@VERSION#INTEGRITY or docker:IMAGE@TAG#DIGEST")

// Parse parses the text of a pin.
func Parse(text string) (Pin, error) {
	kind, rest, _ := strings.Cut(text, ":")
	rest, integrity, _ := strings.Cut(rest, "#")
	at := strings.LastIndexByte(rest, '@')
	if at < 1 || integrity == "" || strings.ContainsAny(text, " \t\r\n\x00") {
		return Pin{}, errSyntax
	}
	p := Pin{Kind(kind), rest[:at], rest[at+1:], integrity}
	if p.Version == "" || p.Kind != NPM && p.Kind != PyPI && p.Kind != Docker || strings.HasPrefix(p.Name, "-") {
		return Pin{}, errSyntax
	}
	return p, nil
}

// Check reports why the text of a pin is invalid.
func Check(text string) error {
	_, err := Parse(text)
	return err
}

// String returns the text of the pin.
func (p Pin) String() string {
	return string(p.Kind) + ":" + p.Name + "@" + p.Version + "#" + p.Integrity
}

// folder returns the name of the folder in which the package is installed.
func (p Pin) folder() string {
	sum := sha256.Sum256([]byte(p.String()))
	return hex.EncodeToString(sum[:12])
}
