package ops

import (
	"slices"
	"strings"

	"mcpproxy/internal/config"
)

// clearTextSecret is a secret in clear text in a launch.
type clearTextSecret struct {
	Credential
	name string // name in the keyring
}

// findClearTextSecrets returns the secrets of a launch.
func findClearTextSecrets(server string, l config.Launch) (all []clearTextSecret) {
	for _, c := range FindCredentials(server, l) {
		all = append(all, clearTextSecret{Credential: c})
	}
	return all
}

// replaceClearTextSecrets returns a launch with its secrets replaced.
func replaceClearTextSecrets(l config.Launch, all []clearTextSecret, instead func(clearTextSecret) string) config.Launch {
	found := make([]Credential, len(all))
	for i, c := range all {
		found[i] = c.Credential
	}
	return ReplaceCredentials(l, found, func(i int) string { return instead(all[i]) })
}

// hasSecretInCommand reports whether a masked text is in the command or its arguments, where it could be what is executed instead of a secret.
func hasSecretInCommand(all []clearTextSecret) bool {
	return slices.ContainsFunc(all, func(c clearTextSecret) bool { return c.Place == "command" || strings.HasPrefix(c.Place, "args.") })
}

func maskPlaceholder(clearTextSecret) string { return "[masked]" }

func keyringReference(c clearTextSecret) string { return "${keyring:" + c.name + "}" }
