package config

// unset is the name of an environment variable that is not set.
type unset string

func (u unset) mistake() Mistake {
	return Mistake{Message: "the environment variable " + clip(string(u)) + " is not set", Hint: "set it where MCPProxy is started, or take the reference out"}
}

// remedy says how to set the variable.
func (u unset) remedy() string {
	name := clip(string(u))
	return "set it where MCPProxy is started and restart MCPProxy, or write ${keyring:" + name + "} in its place and run `mcpproxy secrets set " + name + "`"
}
