package mcp

import (
	"encoding/json"

	"mcpproxy/internal/mcp/wirejson"
)

// The names in _meta, and of extensions of the protocol.
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

// RequestMeta is the _meta of a request. Its fields alias the object that was split and are nil for missing
// members.
type RequestMeta struct {
	// For the proxy.
	Version, Capabilities, ClientInfo, LogLevel []byte
	// Rest contains all other members, which are sent to the server.
	Rest json.RawMessage
}

// fieldByName returns the field for a member, or nil for a member that belongs to Rest.
func (m *RequestMeta) fieldByName(name []byte) *[]byte {
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

// SplitRequestMeta separates the members of a _meta for the proxy from those for the server. It fails if meta is
// not an object.
func SplitRequestMeta(meta []byte) (RequestMeta, error) {
	var m RequestMeta
	hops, others := 0, 0
	err := wirejson.EachMember(meta, func(name, value []byte) error {
		if f := m.fieldByName(name); f != nil {
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
	err = wirejson.EachMember(meta, func(name, value []byte) error {
		if m.fieldByName(name) == nil {
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

// SupportsElicitationForms reports whether a client declares in its capabilities that it can show forms. A client that
// declares no modes supports forms, because they were the first mode.
func SupportsElicitationForms(capabilities []byte) bool {
	declared := wirejson.Find(capabilities, "elicitation")
	return wirejson.Kind(declared) == '{' && (wirejson.Find(declared, "form") != nil || wirejson.Find(declared, "url") == nil)
}
