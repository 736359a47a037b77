package config

import "strings"

// mask replaces a secret in a shown configuration.
const mask = "***"

// maskSecret returns the displayable form of a secret in the file: references are shown.
func maskSecret(raw string) string {
	if raw == "" || hasOnlyReferences(raw) {
		return raw
	}
	return mask
}

// maskWebhookURL masks the path and the query of a webhook's URL, because the URL of a chat's webhook is all that a
// sender needs.
func maskWebhookURL(raw string) string {
	scheme, rest, isURL := strings.Cut(raw, "://")
	host, path, _ := strings.Cut(rest, "/")
	if !isURL || strings.ContainsAny(host, "@?#") {
		return maskSecret(raw)
	}
	if path == "" {
		return raw
	}
	return scheme + "://" + host + "/" + maskSecret(path)
}

// maskDatabaseURL masks the password in a database URL. It masks user information without a password as a whole,
// because the colon may be missing.
func maskDatabaseURL(raw string) string {
	scheme, rest, isAddress := strings.Cut(raw, "://")
	if !isAddress {
		if raw == "sqlite" {
			return raw
		}
		return maskSecret(raw)
	}
	address, query, more := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		user, password, has := strings.Cut(address[:at], ":")
		if has {
			address = user + ":" + maskSecret(password) + address[at:]
		} else {
			address = maskSecret(user) + address[at:]
		}
	}
	if !more {
		return scheme + "://" + address
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		if name, value, _ := strings.Cut(p, "="); strings.Contains(strings.ToLower(name), "password") {
			params[i] = name + "=" + maskSecret(value)
		}
	}
	return scheme + "://" + address + "?" + strings.Join(params, "&")
}
