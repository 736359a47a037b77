package transport

import (
	"bytes"
	"encoding/json"
	"strconv"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// sentRequest is a request in the form in which it is sent, with a new ID, on a connection that several clients may
// share.
type sentRequest struct {
	*session.Request
	id       uint64
	token    json.RawMessage // the caller's progress token, replaced by id unless own; nil if no progress is wanted
	own      bool            // the connection belongs to the caller: tokens are not replaced
	keeps    bool            // sent unchanged with the client's ID and token, because only this caller reads the response
	listenID json.RawMessage // the client's ID of a subscription, replaced by id
}

// encodeRequest sets s to the request r and appends its message to dst.
func (s *sentRequest) encodeRequest(dst []byte, r *session.Request, o *LinkOptions, modern, keeps bool) []byte {
	*s = sentRequest{Request: r, id: o.IDs.Add(1), own: o.Own, keeps: keeps}
	switch {
	case keeps:
		return wirejson.AppendRequestWithID(dst, r.ID, r.Method, r.Params)
	case r.Call != nil:
		return s.appendToolCall(dst, o, modern)
	}
	params := r.Params
	if r.ID == nil && (modern || r.Method == mcp.Discover) {
		params = wirejson.SetMember(params, "_meta", addIdentityToMeta(wirejson.Find(params, "_meta"), o.Version, o.Apps != nil && o.Apps.Load()))
	}
	if s.token = ProgressTokenOf(params); s.token != nil && !s.own {
		params = setMetaMember(params, "progressToken", strconv.AppendUint(nil, s.id, 10))
	}
	if r.Method == mcp.Listen {
		if s.listenID = r.ID; r.ID == nil { // MCPProxy's own subscription
			s.listenID = strconv.AppendUint(nil, s.id, 10)
		}
	}
	return wirejson.AppendRequest(dst, s.id, r.Method, params)
}

// appendToolCall appends a Call.
func (s *sentRequest) appendToolCall(dst []byte, o *LinkOptions, modern bool) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendUint(dst, s.id, 10)
	dst = append(dst, `,"method":"tools/call","params":{"name":`...)
	dst = wirejson.AppendString(dst, s.Call.Tool)
	if s.Call.Arguments != nil {
		dst = append(append(dst, `,"arguments":`...), s.Call.Arguments...)
	}
	meta := s.Call.Meta
	if modern {
		meta = addIdentityToMeta(meta, o.Version, s.Apps)
	}
	if meta != nil {
		if s.token = wirejson.Find(meta, "progressToken"); s.token != nil {
			meta = wirejson.SetMember(meta, "progressToken", strconv.AppendUint(nil, s.id, 10))
		}
		dst = append(append(dst, `,"_meta":`...), meta...)
	}
	return append(dst, "}}"...)
}

// isCancelable reports whether a cancellation of r is sent to the server. It is not sent for the first request of the
// handshake.
func isCancelable(r *session.Request) bool {
	return r.Method != mcp.Initialize && (r.ID != nil || r.Method != mcp.Discover)
}

// wireID returns the ID with which s is sent to the server.
func (s *sentRequest) wireID() json.RawMessage {
	if s.keeps {
		return s.ID
	}
	return strconv.AppendUint(nil, s.id, 10)
}

// isAnsweredBy reports whether m is the response to s, on a stream that contains only this response. An error without
// an ID counts as the response.
func (s *sentRequest) isAnsweredBy(m *wirejson.Message) bool {
	if m.Error != nil && (m.ID == nil || string(m.ID) == "null") {
		return true
	}
	if s.keeps {
		return matchesRequestID(m.ID, s.ID)
	}
	id, ok := parseNumericID(m.ID)
	return ok && id == s.id
}

// getsAllEvents reports whether s is a client's own request, which receives all events.
func (s *sentRequest) getsAllEvents() bool { return s.Say != nil && s.Call == nil }

// wantsNotification reports whether this notification is delivered to the caller of s.
func (s *sentRequest) wantsNotification(method string) bool {
	switch {
	case s.Say == nil:
		return false
	case method == mcp.Progress:
		return s.token != nil
	case method == mcp.LogMessage:
		return s.listenID == nil
	}
	return s.Call == nil
}

// deliverEvent passes an event to the caller, with the caller's own token and ID.
func (s *sentRequest) deliverEvent(e session.Event) {
	if e.Method == mcp.Progress && s.token != nil && !s.own {
		e.Params = wirejson.SetMember(e.Params, "progressToken", s.token)
	}
	if s.listenID != nil {
		e.Params = setSubscriptionID(e.Params, s.listenID)
	}
	s.Say(e)
}

// restoreSubscriptionID restores the client's subscription ID in the result.
func (s *sentRequest) restoreSubscriptionID(r *session.Reply) {
	if s.listenID != nil && r.Result != nil {
		r.Result = setSubscriptionID(r.Result, s.listenID)
	}
}

// addIdentityToMeta adds MCPProxy's identity to a _meta, which may be nil. Of the capabilities it declares only MCP Apps,
// because no client can answer questions for MCPProxy's own requests.
func addIdentityToMeta(meta json.RawMessage, version string, apps bool) json.RawMessage {
	capabilities := "{}"
	if apps {
		capabilities = mcp.AppsCapabilities
	}
	out := append([]byte(nil), `{"`+mcp.MetaVersion+`":"`+mcp.Modern+`","`+mcp.MetaCapabilities+`":`+capabilities+`,"`+mcp.MetaClientInfo+`":{"name":"mcpproxy","version":`...)
	out = append(wirejson.AppendString(out, version), '}')
	inside := bytes.TrimSpace(meta)
	if len(inside) > 2 {
		inside = bytes.TrimLeft(inside[1:], " \t\r\n")
	}
	if len(inside) < 2 || inside[0] == '}' {
		return append(out, '}')
	}
	return append(append(out, ','), inside...)
}

// metaMember returns a member of the _meta of params, or nil.
func metaMember(params json.RawMessage, name string) json.RawMessage {
	if !wirejson.MayContain(params, name) {
		return nil
	}
	return wirejson.Find(wirejson.Find(params, "_meta"), name)
}

// setMetaMember sets a member of the _meta of params.
func setMetaMember(params json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	return wirejson.SetMember(params, "_meta", wirejson.SetMember(wirejson.Find(params, "_meta"), name, value))
}

// ProgressTokenOf returns the progress token of params, or nil.
func ProgressTokenOf(params json.RawMessage) json.RawMessage {
	return metaMember(params, "progressToken")
}

// subscriptionID returns the subscription ID, which MCPProxy assigned.
func subscriptionID(params json.RawMessage) (uint64, bool) {
	return parseNumericID(metaMember(params, mcp.MetaSubscription))
}

// setSubscriptionID replaces the subscription ID with the client's ID.
func setSubscriptionID(obj, id json.RawMessage) json.RawMessage {
	if _, ok := subscriptionID(obj); !ok {
		return obj
	}
	return setMetaMember(obj, mcp.MetaSubscription, id)
}

// progressRequestID returns the request ID of a progress notification.
func progressRequestID(params json.RawMessage) (uint64, bool) {
	return parseNumericID(wirejson.Find(params, "progressToken"))
}

// EqualIDs reports whether two IDs are equal, in any JSON spelling.
func EqualIDs(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, ok := wirejson.String(a)
	y, also := wirejson.String(b)
	return ok && also && x == y
}

// matchesRequestID reports whether the ID of a response matches the only open request: it is equal, or a number that
// the server returned as a string.
func matchesRequestID(id, asked json.RawMessage) bool {
	text, ok := wirejson.String(id)
	return EqualIDs(id, asked) || ok && text == string(asked)
}

// toReply returns a response as a Reply. It copies the bytes unless kept is set.
func toReply(m *wirejson.Message, kept bool) session.Reply {
	if m.Error != nil {
		e := *m.Error
		e.Data = bytes.Clone(e.Data)
		return session.Reply{Error: &e}
	}
	if kept {
		return session.Reply{Result: m.Result}
	}
	return session.Reply{Result: bytes.Clone(m.Result)}
}

// toEvent returns a message as an Event, which is valid as long as m.
func toEvent(m *wirejson.Message) session.Event {
	return session.Event{Method: m.Method, ID: m.ID, Params: m.Params}
}

// parseNumericID parses an ID that MCPProxy assigned. Some servers return it as a string.
func parseNumericID(raw json.RawMessage) (id uint64, ok bool) {
	if n := len(raw); n > 2 && raw[0] == '"' && raw[n-1] == '"' && raw[1] != '0' {
		raw = raw[1 : n-1]
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		id = id*10 + uint64(c-'0')
	}
	return id, 0 < len(raw) && len(raw) < 20 // more digits may overflow
}
