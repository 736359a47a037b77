package ops

import (
	"slices"
	"strings"

	"mcpproxy/internal/config"
)

// inClear is a secret in clear text in a launch.
type inClear struct {
	Credential
	name string // name in the keyring
}

// credentials returns the secrets of a launch.
func credentials(server string, l config.Launch) (all []inClear) {
	for _, c := range CredentialsIn(server, l) {
		all = append(all, inClear{Credential: c})
	}
	return all
}

// replaceSecrets returns a launch with its secrets replaced.
func replaceSecrets(l config.Launch, all []inClear, instead func(inClear) string) config.Launch {
	found := make([]Credential, len(all))
	for i, c := range all {
		found[i] = c.Credential
	}
	return ReplaceCredentials(l, found, func(i int) string { return instead(all[i]) })
}

// hidesArguments reports whether a masked text is in the command or its arguments, where it could be what is executed instead of a secret.
func hidesArguments(all []inClear) bool {
	return slices.ContainsFunc(all, func(c inClear) bool { return c.Place == "command" || strings.HasPrefix(c.Place, "args.") })
}

func maskedText(inClear) string { return "[masked]" }

func keyringReference(c inClear) string { return "${keyring:" + c.name + "}" }
