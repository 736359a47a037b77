//go:build !unix

package pin

import "errors"

func execProgram(string, []string, []string) error { return errors.New("not on this system") }
