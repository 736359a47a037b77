package config

import "strings"

// mask replaces a secret in a shown configuration.
const mask = "***"

// masked returns what may be shown of a secret in the file: references are shown.
func masked(raw string) string {
	if raw == "" || onlyReferences(raw) {
		return raw
	}
	return mask
}

// maskedDatabase masks the password in a database URL; one without a user is masked as a
// whole, because a colon may be missing.
func maskedDatabase(raw string) string {
	scheme, rest, isAddress := strings.Cut(raw, "://")
	if !isAddress {
		if raw == "sqlite" {
			return raw
		}
		return masked(raw)
	}
	address, query, more := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		user, password, has := strings.Cut(address[:at], ":")
		if has {
			address = user + ":" + masked(password) + address[at:]
		} else {
			address = masked(user) + address[at:]
		}
	}
	if !more {
		return scheme + "://" + address
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		if name, value, _ := strings.Cut(p, "="); strings.Contains(strings.ToLower(name), "password") {
			params[i] = name + "=" + masked(value)
		}
	}
	return scheme + "://" + address + "?" + strings.Join(params, "&")
}
