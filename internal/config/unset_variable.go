package config

// unsetVariable is the name of an unset environment variable.
type unsetVariable string

func (u unsetVariable) toMistake() Mistake {
	return Mistake{Message: "the environment variable " + clipText(string(u)) + " is not set", Hint: "set it in MCPProxy's environment, or remove the reference"}
}

// remedyHint returns a hint about how to set the variable.
func (u unsetVariable) remedyHint() string {
	name := clipText(string(u))
	return "set it in MCPProxy's environment and restart MCPProxy, or write ${keyring:" + name + "} in its place and run `mcpproxy secrets set " + name + "`"
}
