package ops

import (
	"slices"
	"strings"

	"mcpproxy/internal/config"
)

// launchSecret is a plain-text secret in a launch.
type launchSecret struct {
	Credential
	name string // name in the keyring
}

// findLaunchSecrets returns the plain-text secrets of a launch.
func findLaunchSecrets(server string, l config.Launch) (all []launchSecret) {
	for _, c := range FindCredentials(server, l) {
		all = append(all, launchSecret{Credential: c})
	}
	return all
}

// replaceLaunchSecrets returns a launch with its secrets replaced.
func replaceLaunchSecrets(l config.Launch, all []launchSecret, instead func(launchSecret) string) config.Launch {
	found := make([]Credential, len(all))
	for i, c := range all {
		found[i] = c.Credential
	}
	return ReplaceCredentials(l, found, func(i int) string { return instead(all[i]) })
}

// hasSecretInCommand reports whether a masked text is in the command or its arguments. Such a text could be code to
// execute instead of a secret.
func hasSecretInCommand(all []launchSecret) bool {
	return slices.ContainsFunc(all, func(c launchSecret) bool { return c.Place == "command" || strings.HasPrefix(c.Place, "args.") })
}

func maskPlaceholder(launchSecret) string { return "[masked]" }

func keyringReference(c launchSecret) string { return "${keyring:" + c.name + "}" }
