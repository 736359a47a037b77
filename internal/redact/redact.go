// Package redact finds values that look like credentials in JSON and in text
// and replaces each by its kind and a short hash, so that two places that held
// the same secret can be recognised and the secret cannot be read.
//
// It guarantees that well-formed JSON stays well-formed JSON, that a text
// without credentials comes back as the same bytes (the same slice, no copy),
// and that the time is linear in the size. It does no I/O and it is not a
// gate: it decides what is stored and shown, never what is forwarded.
package redact
