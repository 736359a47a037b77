package mcpserver

import (
	"encoding/json"

	"mcpproxy/internal/strictjson"
)

// params are the members of a message's params that any of our methods looks
// at, as raw JSON; nil when not given.
type params struct {
	name, uri, arguments, meta, cursor []byte
	version, clientInfo                []byte // of initialize
	requestID                          []byte // of notifications/cancelled
	notifications                      []byte // of subscriptions/listen
	taskID                             []byte // of tasks/…
}

func readParams(raw []byte) (p params, err error) {
	if raw == nil {
		return p, nil
	}
	err = strictjson.Members(raw, func(name, value []byte) error {
		switch string(name) {
		case "name":
			p.name = value
		case "uri":
			p.uri = value
		case "arguments":
			p.arguments = value
		case "_meta":
			p.meta = value
		case "cursor":
			p.cursor = value
		case "protocolVersion":
			p.version = value
		case "clientInfo":
			p.clientInfo = value
		case "requestId":
			p.requestID = value
		case "notifications":
			p.notifications = value
		case "taskId":
			p.taskID = value
		}
		return nil
	})
	return p, err
}

// The names that a modern request speaks about itself with.
const (
	metaPrefix       = "io.modelcontextprotocol/"
	metaVersion      = metaPrefix + "protocolVersion"
	metaCapabilities = metaPrefix + "clientCapabilities"
	metaClientInfo   = metaPrefix + "clientInfo"
	metaLogLevel     = metaPrefix + "logLevel"
	metaServerInfo   = metaPrefix + "serverInfo"
	metaSubscription = metaPrefix + "subscriptionId"
)

// meta is a request's _meta.
type meta struct {
	version, capabilities, clientInfo []byte
	// forward is what goes on to the upstream: everything but what client and
	// proxy say to each other; nil when nothing is left.
	forward json.RawMessage
}

func readMeta(raw []byte) (m meta, err error) {
	if raw == nil || strictjson.Kind(raw) == 'n' {
		return m, nil
	}
	hops, rest := 0, 0
	err = strictjson.Members(raw, func(name, value []byte) error {
		hops++
		switch string(name) {
		case metaVersion:
			m.version = value
		case metaCapabilities:
			m.capabilities = value
		case metaClientInfo:
			m.clientInfo = value
		case metaLogLevel:
		default:
			hops--
			rest++
		}
		return nil
	})
	switch {
	case err != nil || rest == 0:
	case hops == 0:
		m.forward = raw
	default:
		m.forward, err = withoutHops(raw)
	}
	return m, err
}

func withoutHops(raw []byte) (json.RawMessage, error) {
	out := append(make([]byte, 0, len(raw)), '{')
	err := strictjson.Members(raw, func(name, value []byte) error {
		switch string(name) {
		case metaVersion, metaCapabilities, metaClientInfo, metaLogLevel:
			return nil
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendText(out, name)
		out = append(out, ':')
		out = append(out, value...)
		return nil
	})
	return append(out, '}'), err
}
