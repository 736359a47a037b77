package mcpserver

import (
	"context"
	"net/http"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
)

// All is what the surface of all servers at once needs of the product.
type All interface {
	ListAll(ctx context.Context, o gateway.Offer, cursor string, c gateway.Caller) (gateway.Page, error)
	RelayAll(ctx context.Context, r gateway.AllRequest) (upstream.Answer, error)
	OfferingOf(c gateway.Caller) gateway.Offering
	ListedNow(c gateway.Caller) (gateway.Listed, <-chan struct{})
}

// allPath is the surface of all servers at once; allTarget stands for it among
// the servers, none of which can have that name.
const allPath, allTarget = "/mcp/all", "*"

// allInstructions is what a client may tell its model about this surface.
const allInstructions = "These are the tools, prompts and resources of many MCP servers, through MCPProxy. " +
	"A tool or prompt is named server__name, and does what that server says it does; its annotations are those that its user lets count."

// postAll answers a message for all servers at once.
func (x *exchange) postAll() { x.postPassing(x.initializeAll, x.requestAll, x.noticeAll) }

// requestAll answers a request: by itself, or by the server that it is for.
func (x *exchange) requestAll() {
	switch _, _, lists := gateway.OfferOf(x.msg.Method); {
	case x.modern && x.msg.Method == "subscriptions/listen":
		x.listenAll()
	case lists || !x.forOneServer():
		x.send(x.answerAll(x.r.Context()))
	default:
		x.reply(func(ctx context.Context, st *stream) outcome {
			if st == nil {
				return x.passAll(ctx, nil)
			}
			return x.passAll(ctx, func(e upstream.Event) { st.tell(&e) })
		})
	}
}

// forOneServer says whether the request is about something of one server.
func (x *exchange) forOneServer() bool {
	switch x.msg.Method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete":
		return true
	}
	return false
}

// passAll passes a request on to the server that it is for.
func (x *exchange) passAll(ctx context.Context, events func(upstream.Event)) outcome {
	r := gateway.AllRequest{RelayRequest: x.relayed()}
	r.Server, r.Request.Events = "", events
	if x.session != nil {
		r.Talk = x.talkWith
	}
	a, err := x.s.All.RelayAll(ctx, r)
	return x.passedOn(a, err)
}

// answerAll answers a request that is about no server by itself.
func (x *exchange) answerAll(ctx context.Context) outcome {
	offer, list, lists := gateway.OfferOf(x.msg.Method)
	switch {
	case lists:
		return x.listAll(ctx, offer, list)
	case x.modern && x.msg.Method == "server/discover":
		return outcome{result: pieces(x.discoverAll())}
	case !x.modern && x.msg.Method == "ping":
		return outcome{result: pieces([]byte("{}"))}
	case !x.modern && x.msg.Method == "logging/setLevel":
		return x.setLevelAll(ctx)
	}
	return methodNotFound(x.msg.Method)
}

// listAll answers with a page of a list.
func (x *exchange) listAll(ctx context.Context, offer gateway.Offer, list string) outcome {
	cursor := ""
	if c := x.params.cursor; c != nil && strictjson.Kind(c) != 'n' {
		var ok bool
		if cursor, ok = strictjson.String(c); !ok {
			return outcome{err: invalidParams("params.cursor must be a string")}
		}
	}
	if cursor == "" && x.session != nil {
		now, _ := x.s.All.ListedNow(x.caller()) // first: what changes meanwhile is announced
		x.session.all.heard.listed(offer, now)
	}
	p, err := x.s.All.ListAll(ctx, offer, cursor, x.caller())
	if err != nil {
		return outcome{err: x.relayError(err), status: x.refusedStatus(problem.From(err))}
	}
	head := x.ownFront()
	out := append(appendText(nil, []byte(list)), ":["...)
	for i, item := range p.Items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	out = append(out, ']')
	if p.Next != "" {
		out = appendText(append(out, `,"nextCursor":`...), []byte(p.Next))
	}
	if x.modern {
		out = append(out, cachingAll...)
	}
	return outcome{result: pieces(head, append(out, '}'))}
}

// cachingAll is said of what may change at any time, and differ between clients.
const cachingAll = `,"ttlMs":0,"cacheScope":"private"`

// initializeAll opens a session.
func (x *exchange) initializeAll() {
	version, _ := strictjson.String(x.params.version)
	if version == "" || version == modernVersion || !legacyVersion(version) {
		version = latestLegacy
	}
	if len(x.msg.Params) > maxIntroduction {
		x.send(outcome{err: invalidParams("what a client says of itself must not be longer than 65536 bytes")})
		return
	}
	client, clientVersion := identity(x.params.clientInfo)
	s := &session{actor: x.actor, version: version, client: client, clientVersion: clientVersion,
		server: allTarget, all: &talks{initialize: introduction(x.msg.Params, version), with: map[string]*talk{}}}
	if err := x.s.sessions.open(s); err != nil {
		x.fail(http.StatusServiceUnavailable, err)
		return
	}
	x.w.Header()[headerSession] = []string{s.id}
	x.send(outcome{result: pieces([]byte(`{"protocolVersion":"` + version + `","capabilities":` + x.capabilitiesAll() +
		`,"serverInfo":` + string(x.s.texts.serverInfo) + `,"instructions":"` + allInstructions + `"}`))})
}

func (x *exchange) discoverAll() []byte {
	return []byte(string(x.ownFront()) + `"supportedVersions":` + versionList + `,"capabilities":` + x.capabilitiesAll() +
		`,"instructions":"` + allInstructions + `"` + cachingAll + `}`)
}

// capabilitiesAll is what the servers can do together, as far as it is passed on.
func (x *exchange) capabilitiesAll() string {
	o := x.s.All.OfferingOf(x.caller())
	out := `{"tools":{"listChanged":true}`
	for _, c := range []struct {
		has  bool
		says string
	}{
		{o.Prompts, `,"prompts":{"listChanged":true}`},
		{o.Resources, `,"resources":{"listChanged":true}`},
		{o.Completions, `,"completions":{}`},
		{o.Logging, `,"logging":{}`},
	} {
		if c.has {
			out += c.says
		}
	}
	return out + "}"
}

// runAllInBatch is requestAll for a message of a batch.
func (x *exchange) runAllInBatch() outcome {
	if !x.forOneServer() {
		return x.answerAll(x.r.Context())
	}
	ctx, _, end := x.cancellable()
	defer end()
	o := x.passAll(ctx, nil)
	o.status = 0
	return o
}
