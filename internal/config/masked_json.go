package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/redact"
)

// maskValue returns the displayable form of the value of a key.
func (k configKey) maskValue(raw string) string {
	if k.mask != nil {
		return k.mask(raw)
	}
	return maskSecret(raw)
}

// Masked returns c as it may be shown. It contains references instead of their values, and masks other values of env,
// headers and api_key.
func (c Config) Masked() *Config {
	if c.shown != nil {
		return c.shown
	}
	maskKeys(c.keys())
	c.Servers = slices.Clone(c.Servers)
	for i := range c.Servers {
		c.Servers[i] = c.Servers[i].Masked()
	}
	return &c
}

// Masked returns s as it may be shown.
func (s Server) Masked() Server {
	if s.shown != nil {
		return *s.shown
	}
	return maskServer(s)
}

// maskServer masks env and headers, and values that look like secrets in the URL and the arguments.
func maskServer(s Server) Server {
	maskKeys(s.keys())
	if s.Args != nil { // keeps the difference between an absent list and []
		s.Args = redact.Args(s.Args)
	}
	s.URL = redact.URL(s.URL)
	return s
}

// maskObjects masks the secret keys of each object.
func maskObjects[T any](list *[]T, keysOf func(*T) []configKey) {
	*list = slices.Clone(*list)
	for i := range *list {
		maskKeys(keysOf(&(*list)[i]))
	}
}

// maskKeys masks the secret keys.
func maskKeys(keys []configKey) {
	for _, k := range keys {
		switch list := k.field.(type) {
		case *[]Webhook:
			maskObjects(list, (*Webhook).keys)
		case *[]OIDCIssuer:
			maskObjects(list, (*OIDCIssuer).keys)
		}
		if !k.secret {
			continue
		}
		switch v := k.field.(type) {
		case *string:
			*v = k.maskValue(*v)
		case *map[string]string:
			*v = maps.Clone(*v)
			for name, value := range *v {
				(*v)[name] = maskSecret(value)
			}
		}
	}
}

// MarshalJSON returns the effective configuration in the form of the file, with defaults
// and without secrets.
func (c Config) MarshalJSON() ([]byte, error) {
	shown := c.Masked()
	return encodeObject(shown.keys(), func(k configKey) bool { return !k.secret || !k.reflectField().IsZero() })
}

// MarshalJSON returns the server in the form of the file, without secrets and defaults.
func (s Server) MarshalJSON() ([]byte, error) {
	return encodeServer(s.Masked())
}

// String returns the configuration as JSON, without secrets.
func (c Config) String() string { return marshalToString(c) }

// GoString keeps secrets out of %#v.
func (c Config) GoString() string { return marshalToString(c) }

// LogValue keeps secrets out of the log.
func (c Config) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("%d servers", len(c.Servers)))
}

// String returns the server as JSON, without secrets.
func (s Server) String() string { return marshalToString(s) }

// GoString keeps secrets out of %#v.
func (s Server) GoString() string { return marshalToString(s) }

// LogValue keeps secrets out of the log.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.Name) }

func marshalToString(v json.Marshaler) string {
	b, err := v.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// encodeObject encodes the keys that keep accepts, in table order.
func encodeObject(keys []configKey, keep func(configKey) bool) ([]byte, error) {
	var out objectWriter
	for i, k := range keys {
		group := k.groupName()
		if group != "" && i > 0 && keys[i-1].groupName() == group {
			continue // written with the first of the group
		}
		if group != "" {
			inner, err := encodeObject(keysInGroup(keys, group), keep)
			if err != nil {
				return nil, err
			}
			if string(inner) != "{}" {
				out.addMember(group, inner)
			}
			continue
		}
		if k.field == nil || !keep(k) {
			continue
		}
		value, err := encodeValue(k.value())
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k.name, err)
		}
		out.addMember(k.name, value)
	}
	return out.toJSON(), nil
}

// encodeValue encodes a field's value as in the file.
func encodeValue(v any) ([]byte, error) {
	switch v := v.(type) {
	case time.Duration:
		return wirejson.MarshalWithoutHTMLEscape(formatDuration(v))
	case tool.TriBool:
		return wirejson.MarshalWithoutHTMLEscape(v == tool.True)
	case []HintOverride:
		return encodeEntries(v)
	case []ArgumentLaneRule:
		return encodeEntries(v)
	case []ToolSettings:
		return encodeEntries(v)
	case []Profile:
		return encodeEntries(v)
	case []ResultSelection:
		var out objectWriter
		for _, s := range v {
			out.addMember(s.Pattern, wirejson.AppendString(nil, s.Expression))
		}
		return out.toJSON(), nil
	case []Webhook:
		return encodeObjects(v, (*Webhook).keys)
	case []OIDCIssuer:
		return encodeObjects(v, (*OIDCIssuer).keys)
	case []UserRule:
		return encodeObjects(v, (*UserRule).keys)
	case []policy.ScopeTools:
		var out objectWriter
		for _, t := range v {
			b, err := encodeValue(t.Patterns)
			if err != nil {
				return nil, err
			}
			out.addMember(t.Server, b)
		}
		return out.toJSON(), nil
	case []Server:
		var out objectWriter
		for _, s := range v {
			b, err := encodeServer(s)
			if err != nil {
				return nil, err
			}
			out.addMember(s.Name, b)
		}
		return out.toJSON(), nil
	case []string:
		if v == nil {
			return []byte("[]"), nil
		}
	case map[string]string:
		if v == nil {
			return []byte("{}"), nil
		}
	}
	return wirejson.MarshalWithoutHTMLEscape(v)
}

// encodeEntries encodes the entries of an object whose names the user chooses.
func encodeEntries[T any, P interface {
	*T
	entryName() string
	keys() []configKey
}](all []T) ([]byte, error) {
	var out objectWriter
	for i := range all {
		one := P(&all[i])
		b, err := encodeObject(one.keys(), isNotDefault)
		if err != nil {
			return nil, err
		}
		out.addMember(one.entryName(), b)
	}
	return out.toJSON(), nil
}

func isNotDefault(k configKey) bool { return !k.isDefault() }

// encodeServer encodes a masked server.
func encodeServer(s Server) ([]byte, error) {
	return encodeObject(s.keys(), func(k configKey) bool { return k.name != "name" && !k.isDefault() })
}

// objectWriter writes a JSON object with members in order.
type objectWriter struct{ text []byte }

func (o *objectWriter) addMember(name string, value []byte) {
	separator := byte(',')
	if len(o.text) == 0 {
		separator = '{'
	}
	quoted, _ := wirejson.MarshalWithoutHTMLEscape(name) // a string always encodes
	o.text = append(append(append(append(o.text, separator), quoted...), ':'), value...)
}

func (o *objectWriter) toJSON() []byte {
	if len(o.text) == 0 {
		return []byte("{}")
	}
	return append(o.text, '}')
}

// minSecret is the minimum length of an env value that counts as a secret. Shorter values are usually flags, and
// occur in many texts by chance.
const minSecret = 8

// SecretValues returns the values that must not occur in any text about the server: resolved
// references, headers, and longer env values.
func (s Server) SecretValues() []string {
	all := slices.Clone(s.revealed)
	for _, v := range s.Headers {
		all = append(all, v)
	}
	for _, v := range s.Env {
		if len(v) >= minSecret {
			all = append(all, v)
		}
	}
	if s.OAuth.ClientSecret != "" {
		all = append(all, s.OAuth.ClientSecret)
	}
	if shown := s.shown; shown != nil {
		all = append(all, resolvedValues(shown.Command, s.Command)...)
		all = append(all, resolvedValues(shown.URL, s.URL)...)
		all = append(all, resolvedValues(shown.WorkingDir, s.WorkingDir)...)
		for i, arg := range s.Args {
			if i < len(shown.Args) {
				all = append(all, resolvedValues(shown.Args[i], arg)...)
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(v string) bool { return v == "" })
}

// resolvedValues returns the values in actual of the references in shown. If the surrounding texts differ, because
// more is masked, it returns all of actual.
func resolvedValues(shown, actual string) []string {
	around := referencePattern.Split(shown, -1)
	if len(around) == 1 {
		return nil
	}
	rest, ok := strings.CutPrefix(actual, around[0])
	var values []string
	for i, text := range around[1:] {
		at := len(rest)
		if text != "" || i < len(around)-2 {
			at = strings.Index(rest, text)
		}
		if !ok || at < 0 {
			return []string{actual}
		}
		values = append(values, rest[:at])
		rest = rest[at+len(text):]
	}
	return values
}

// encodeObjects encodes a list of objects, without the keys that have their default.
func encodeObjects[T any](list []T, keysOf func(*T) []configKey) ([]byte, error) {
	out := []json.RawMessage{}
	for i := range list {
		b, err := encodeObject(keysOf(&list[i]), isNotDefault)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return wirejson.MarshalWithoutHTMLEscape(out)
}
