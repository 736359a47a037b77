package ops

import (
	"slices"
	"strings"

	"mcpproxy/internal/config"
)

// inClear is a secret that stands in clear in a launch.
type inClear struct {
	Credential
	name string // under which the keyring is to keep it
}

// credentials are the secrets of a launch.
func credentials(server string, l config.Launch) (all []inClear) {
	for _, c := range CredentialsIn(server, l) {
		all = append(all, inClear{Credential: c})
	}
	return all
}

// with is a launch with something else in the place of its secrets.
func with(l config.Launch, all []inClear, instead func(inClear) string) config.Launch {
	found := make([]Credential, len(all))
	for i, c := range all {
		found[i] = c.Credential
	}
	return ReplaceCredentials(l, found, func(i int) string { return instead(all[i]) })
}

// hides reports whether what is masked could be more than a secret: among the arguments
// it may as well be what is to run.
func hides(all []inClear) bool {
	return slices.ContainsFunc(all, func(c inClear) bool { return c.Place == "command" || strings.HasPrefix(c.Place, "args.") })
}

func mask(inClear) string { return "[masked]" }

func reference(c inClear) string { return "${keyring:" + c.name + "}" }
