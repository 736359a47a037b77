package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"mcpproxy/internal/problem"
)

// secretMark stands before and after the name of a secret in a string of a
// server, in the place of ${keyring:NAME}. No string of a file or of an environment
// holds a NUL, so that nothing else can be taken for one.
const secretMark = "\x00"

// holdsSecret reports whether a string of a server waits for a secret.
func holdsSecret(s string) bool { return strings.Contains(s, secretMark) }

// SecretNames are the names of the secrets that s refers to, sorted.
func (s Server) SecretNames() []string {
	names := map[string]bool{}
	_ = s.eachSecret(func(_, name string) (string, error) { names[name] = true; return "", nil })
	return slices.Sorted(maps.Keys(names))
}

// Reveal returns s with the secrets in the place of its references to them. value
// returns a secret, or says in words that an agent may read why there is none.
// The error tells of all that keeps s from being started, and holds no value.
func (s Server) Reveal(value func(name string) (string, error)) (Server, error) {
	var wrong []string
	for _, name := range s.unset {
		wrong = append(wrong, "it needs the environment variable "+clip(name)+", which is not set: "+unset(name).remedy())
	}
	note := func(err error) {
		if err != nil && !slices.Contains(wrong, err.Error()) {
			wrong = append(wrong, err.Error())
		}
	}
	s.revealed = nil
	err := s.eachSecret(func(_, name string) (string, error) {
		v, err := value(name)
		note(err)
		s.revealed = append(s.revealed, v)
		return v, nil
	})
	if len(wrong) == 0 {
		note(err)
	}
	if len(wrong) > 0 {
		return s, problem.Ownf("%s", strings.Join(wrong, "; "))
	}
	return s, nil
}

// NeedsVariable reports whether s names an environment variable that is not set.
func (s Server) NeedsVariable() bool { return len(s.unset) > 0 }

// eachSecret puts what reveal returns in the place of each secret of s, whose lists
// and maps are copied before, and checks what comes of it.
func (s *Server) eachSecret(reveal func(key, name string) (string, error)) error {
	var wrong []error
	for _, k := range s.keys() {
		put := func(text string) string {
			if !holdsSecret(text) {
				return text
			}
			parts := strings.Split(text, secretMark) // the names are the odd ones
			for i := 1; i < len(parts); i += 2 {
				v, err := reveal(k.name, parts[i])
				wrong = append(wrong, err)
				parts[i] = v
			}
			whole := strings.Join(parts, "")
			if k.check != nil {
				wrong = append(wrong, unfit(k.name, k.check(whole)))
			}
			return whole
		}
		k.replaceStrings(put)
	}
	return errors.Join(wrong...)
}

// unfit says that a secret cannot stand where it is, without what to do about a
// text that nobody sees.
func unfit(key string, err error) error {
	if err == nil {
		return nil
	}
	message, _, _ := strings.Cut(err.Error(), "; ")
	return problem.Ownf("with its secret, %s cannot be used: %s", key, message)
}

// replaceStrings replaces the strings of a key that may hold secrets.
func (k key) replaceStrings(put func(string) string) {
	if !k.secrets {
		return
	}
	switch to := k.to.(type) {
	case *string:
		*to = put(*to)
	case *[]string:
		*to = slices.Clone(*to)
		for i := range *to {
			(*to)[i] = put((*to)[i])
		}
	case *map[string]string:
		*to = maps.Clone(*to)
		for _, name := range slices.Sorted(maps.Keys(*to)) {
			(*to)[name] = put((*to)[name])
		}
	}
}
