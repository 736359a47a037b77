package ops

import (
	"slices"
	"strings"

	"mcpproxy/internal/config"
)

// clearSecret is a secret in clear text in a launch.
type clearSecret struct {
	Credential
	name string // name in the keyring
}

// credentials returns the secrets of a launch.
func credentials(server string, l config.Launch) (all []clearSecret) {
	for _, c := range CredentialsIn(server, l) {
		all = append(all, clearSecret{Credential: c})
	}
	return all
}

// replaceSecrets returns a launch with its secrets replaced.
func replaceSecrets(l config.Launch, all []clearSecret, instead func(clearSecret) string) config.Launch {
	found := make([]Credential, len(all))
	for i, c := range all {
		found[i] = c.Credential
	}
	return ReplaceCredentials(l, found, func(i int) string { return instead(all[i]) })
}

// hidesArguments reports whether a masked text is in the command or its arguments, where it could be what is executed instead of a secret.
func hidesArguments(all []clearSecret) bool {
	return slices.ContainsFunc(all, func(c clearSecret) bool { return c.Place == "command" || strings.HasPrefix(c.Place, "args.") })
}

func maskedText(clearSecret) string { return "[masked]" }

func keyringReference(c clearSecret) string { return "${keyring:" + c.name + "}" }
