package mcp

import (
	"encoding/json"

	"mcpproxy/internal/mcp/wirejson"
)

// The names in _meta, and of what extends the protocol.
const (
	namespace        = "io.modelcontextprotocol/"
	MetaVersion      = namespace + "protocolVersion"
	MetaCapabilities = namespace + "clientCapabilities"
	MetaClientInfo   = namespace + "clientInfo"
	MetaLogLevel     = namespace + "logLevel"
	MetaServerInfo   = namespace + "serverInfo"
	MetaSubscription = namespace + "subscriptionId"
	TasksExtension   = namespace + "tasks"
)

// Meta is the _meta of a request. Its parts alias the object that was split,
// and are nil where it has none.
type Meta struct {
	// What client and proxy say to each other.
	Version, Capabilities, ClientInfo, LogLevel []byte
	// Rest is everything else, which goes on to the server.
	Rest json.RawMessage
}

// field returns where the member of that name is kept; nil for what goes on.
func (m *Meta) field(name []byte) *[]byte {
	switch string(name) {
	case MetaVersion:
		return &m.Version
	case MetaCapabilities:
		return &m.Capabilities
	case MetaClientInfo:
		return &m.ClientInfo
	case MetaLogLevel:
		return &m.LogLevel
	}
	return nil
}

// SplitMeta tells apart what a _meta says to whom. It fails on what is no object.
func SplitMeta(meta []byte) (Meta, error) {
	var m Meta
	hops, others := 0, 0
	err := wirejson.Members(meta, func(name, value []byte) error {
		if f := m.field(name); f != nil {
			*f = value
			hops++
		} else {
			others++
		}
		return nil
	})
	switch {
	case err != nil || others == 0:
		return m, err
	case hops == 0:
		m.Rest = meta
		return m, nil
	}
	m.Rest = append(make([]byte, 0, len(meta)), '{')
	err = wirejson.Members(meta, func(name, value []byte) error {
		if m.field(name) == nil {
			if len(m.Rest) > 1 {
				m.Rest = append(m.Rest, ',')
			}
			m.Rest = append(append(wirejson.AppendString(m.Rest, name), ':'), value...)
		}
		return nil
	})
	m.Rest = append(m.Rest, '}')
	return m, err
}

// TakesForms reports whether a client has declared, in its capabilities, that it shows
// its user forms. One that says nothing of kinds shows forms, which were there first.
func TakesForms(capabilities []byte) bool {
	declared := wirejson.Find(capabilities, "elicitation")
	return wirejson.Kind(declared) == '{' && (wirejson.Find(declared, "form") != nil || wirejson.Find(declared, "url") == nil)
}
