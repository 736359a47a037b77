package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"mcpproxy/internal/problem"
)

// secretMark encloses the name of a secret in a server's string, in place of ${keyring:NAME}. It is unambiguous,
// because strings in files and environments contain no NUL.
const secretMark = "\x00"

// hasSecretReference reports whether a server's string refers to a secret.
func hasSecretReference(s string) bool { return strings.Contains(s, secretMark) }

// SecretNames returns the names of the secrets that s refers to, sorted.
func (s Server) SecretNames() []string {
	names := map[string]bool{}
	_ = s.replaceSecrets(func(_, name string) (string, error) { names[name] = true; return "", nil })
	return slices.Sorted(maps.Keys(names))
}

// ResolveSecrets returns s with its secrets resolved. value returns a secret, or an error that agents may read. The
// error reports everything that prevents s from starting, and contains no value.
func (s Server) ResolveSecrets(value func(name string) (string, error)) (Server, error) {
	var wrong []string
	for _, name := range s.unsetVariables {
		wrong = append(wrong, "it needs the environment variable "+clipText(name)+", which is not set: "+unsetVariable(name).remedyHint())
	}
	note := func(err error) {
		if err != nil && !slices.Contains(wrong, err.Error()) {
			wrong = append(wrong, err.Error())
		}
	}
	s.revealed = nil
	err := s.replaceSecrets(func(_, name string) (string, error) {
		v, err := value(name)
		note(err)
		s.revealed = append(s.revealed, v)
		return v, nil
	})
	if len(wrong) == 0 {
		note(err)
	}
	if len(wrong) > 0 {
		return s, problem.TrustedTextErrorf("%s", strings.Join(wrong, "; "))
	}
	return s, nil
}

// SecretNames returns the names of the secrets that w refers to.
func (w Webhook) SecretNames() (names []string) {
	_ = replaceSecretsIn(w.keys(), func(_, name string) (string, error) { names = append(names, name); return "", nil })
	return names
}

// ResolveSecrets returns w with its secrets resolved. The error contains no value.
func (w Webhook) ResolveSecrets(value func(name string) (string, error)) (Webhook, error) {
	var missing error
	err := replaceSecretsIn(w.keys(), func(_, name string) (string, error) {
		v, err := value(name)
		if missing == nil {
			missing = err
		}
		return v, nil
	})
	if missing != nil {
		return w, missing
	}
	return w, err
}

// HasUnsetVariable reports whether s refers to an unset environment variable.
func (s Server) HasUnsetVariable() bool { return len(s.unsetVariables) > 0 }

// replaceSecrets replaces the secrets of s by the results of reveal, in copied lists and
// maps, and checks the result.
func (s *Server) replaceSecrets(reveal func(key, name string) (string, error)) error {
	return replaceSecretsIn(s.keys(), reveal)
}

// replaceSecretsIn is replaceSecrets for the keys of an object.
func replaceSecretsIn(keys []configKey, reveal func(key, name string) (string, error)) error {
	var wrong []error
	for _, k := range keys {
		put := func(text string) string {
			if !hasSecretReference(text) {
				return text
			}
			parts := strings.Split(text, secretMark) // the names of secrets have odd indexes
			for i := 1; i < len(parts); i += 2 {
				v, err := reveal(k.name, parts[i])
				wrong = append(wrong, err)
				parts[i] = v
			}
			whole := strings.Join(parts, "")
			if k.check != nil {
				wrong = append(wrong, invalidSecretError(k.name, k.check(whole)))
			}
			return whole
		}
		k.replaceStrings(put)
	}
	return errors.Join(wrong...)
}

// invalidSecretError returns the error for an invalid secret value, without advice about
// the hidden text.
func invalidSecretError(key string, err error) error {
	if err == nil {
		return nil
	}
	message, _, _ := strings.Cut(err.Error(), "; ")
	return problem.TrustedTextErrorf("%s is invalid with the value of its secret: %s", key, message)
}

// replaceStrings replaces the strings of a key that may contain secrets.
func (k configKey) replaceStrings(put func(string) string) {
	if !k.secrets {
		return
	}
	switch to := k.field.(type) {
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
