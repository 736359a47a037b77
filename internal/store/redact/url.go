package redact

import "strings"

// URL masks the userinfo of a URL, the credentials in its query, and long random parts of its path, which some services
// use as a key. It masks more than Text, because the result is only for display.
func URL(u string) string {
	scheme, rest, ok := strings.Cut(u, "://")
	if !ok {
		return Text(u)
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	tail, fragment, hasFragment := strings.Cut(tail, "#")
	path, query, hasQuery := strings.Cut(tail, "?")

	var b strings.Builder
	b.WriteString(scheme + "://" + maskUserinfo(authority) + maskPathSegments(path))
	if hasQuery {
		b.WriteString("?" + maskParameters(query))
	}
	if hasFragment {
		b.WriteString("#" + maskParameters(fragment))
	}
	return Text(b.String())
}

// maskUserinfo masks the password before the host. If there is no password, it masks the user, because it may be a
// token.
func maskUserinfo(authority string) string {
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return authority
	}
	user, password, ok := strings.Cut(authority[:at], ":")
	if ok {
		return user + ":" + maskValue("url-password", password) + authority[at:]
	}
	return maskValue("url-user", user) + authority[at:]
}

func maskPathSegments(path string) string {
	const long = 24
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if len(s) >= long && looksRandom([]byte(s), 3) {
			segments[i] = maskValue("url-path", s)
		}
	}
	return strings.Join(segments, "/")
}

// maskParameters masks the values of parameters with credential names in name=value&name=value.
func maskParameters(query string) string {
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		if name, value, ok := strings.Cut(p, "="); ok {
			if kind, _ := classifyName([]byte(name)); kind != "" {
				parameters[i] = name + "=" + maskValue(kind, value)
			}
		}
	}
	return strings.Join(parameters, "&")
}
