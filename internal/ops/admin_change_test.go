package ops

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// ChangeServer does not change the quarantine of a server or keys that are not changeable.
func TestChangeableKeys(t *testing.T) {
	w := newAdminWorld(t, nil, full)
	ctx := context.Background()
	for _, key := range []string{"args", "protocol", "quarantined", "enabled", "name", "", "Trust"} {
		if p := problem.From(second(w.gateway.ChangeServer(ctx, adminPerson, ServerChange{ServerRef: ServerRef{Name: "s"}, Key: key, Value: json.RawMessage(`"x"`)}))); p == nil || p.Code != problem.InvalidParameter {
			t.Errorf("%q: %v", key, p)
		}
	}
	if p := problem.From(second(w.gateway.ChangeServer(ctx, adminPerson, ServerChange{ServerRef: ServerRef{Name: "t"}, Key: "trust", Value: nil}))); p == nil || p.Code != problem.ServerNotFound {
		t.Errorf("an unknown server: %v", p)
	}
	w.Begun, w.Ended = nil, nil
	if _, err := w.gateway.ChangeServer(ctx, adminPerson, ServerChange{ServerRef: ServerRef{Name: "s"}, Key: "disabled_tools", Value: json.RawMessage(`["a*"]`)}); err != nil {
		t.Fatal(err)
	}
	if r := w.Begun[0]; r.Type != activity.ConfigChange || r.Metadata.Action != "set_disabled_tools" || r.Metadata.Detail != `["a*"]` || r.Actor != "admin" || w.Ended[0].Status != activity.Success {
		t.Errorf("recorded: %+v, %+v", w.Begun, w.Ended)
	}
	withKey := Caller{Actor: adminPerson.Actor, Source: activity.SourceMCP} // an MCP client, so not a user
	if v, err := w.gateway.AddServer(ctx, withKey, AddServerRequest{Name: "new", Launch: config.Launch{Command: "c"}}); err != nil || !v.Quarantined || v.Stage != StageLaunch {
		t.Fatalf("%+v %v", v, err)
	}
	for name, err := range map[string]error{
		"change":  second(w.gateway.ChangeServer(ctx, adminPerson, ServerChange{ServerRef: ServerRef{Name: "new"}, Key: "trust", Value: json.RawMessage(`"auto"`)})),
		"enable":  second(w.gateway.EnableServer(ctx, adminPerson, ServerRef{Name: "new"})),
		"restart": second(w.gateway.RestartServer(ctx, adminPerson, ServerRef{Name: "new"})),
	} {
		if p := problem.From(err); p == nil || p.Code != problem.Conflict {
			t.Errorf("%s of a proposal: %v", name, p)
		}
	}
}

// A change of a launch is recorded without the values that may be secret.
func TestLaunchChangesAreRecordedWithoutValues(t *testing.T) {
	w := newAdminWorld(t, nil, full)
	const secret = "hunter2-hunter2"
	for change, want := range map[string]string{
		`env {"A":"` + secret + `","B":null}`:            "set_env A, B taken out",
		`headers {"X-A":"` + secret + `"}`:               "set_headers X-A",
		`command ["x","--token","` + secret + `"]`:       "set_command ",
		`url "https://example.com/mcp?k=` + secret + `"`: "set_url ",
		`working_dir "/srv"`:                             `set_working_dir "/srv"`,
	} {
		w.Begun = nil
		key, value, _ := strings.Cut(change, " ")
		_, _ = w.gateway.ChangeServer(t.Context(), adminPerson, ServerChange{ServerRef: ServerRef{Name: "s"}, Key: key, Value: json.RawMessage(value)})
		if len(w.Begun) != 1 || w.Begun[0].Metadata.Action+" "+w.Begun[0].Metadata.Detail != want {
			t.Errorf("%s: recorded %+v", change, w.Begun)
		}
	}
}

// A proposal of MCPProxy itself is rejected.
func TestProxyIsNotProposed(t *testing.T) {
	w := newAdminWorld(t, nil, full)
	_, err := w.gateway.AddServer(t.Context(), adminAgent, AddServerRequest{Name: "again", Launch: config.Launch{Command: "mcpproxy", Args: []string{"stdio"}}})
	if p := problem.From(err); p == nil || p.Code != problem.InvalidParameter || len(w.Book.ProposedServers()) != 0 {
		t.Errorf("%v, %+v", err, w.Book.ProposedServers())
	}
}

// A change of a key that has its own operation has the same effect as that operation.
func TestChangesRunTheirOperations(t *testing.T) {
	ctx := context.Background()
	for change, want := range map[string]string{"enabled true": "enable", "enabled false": "disable", "quarantined true": "quarantine"} {
		w := newAdminWorld(t, nil, adminReadsTool)
		key, value, _ := strings.Cut(change, " ")
		v, err := w.gateway.ChangeServer(ctx, adminPerson, ServerChange{ServerRef: ServerRef{Name: "s"}, Key: key, Value: json.RawMessage(value)})
		if err != nil || v.Enabled != (want != "disable") || v.Quarantined != (want == "quarantine") {
			t.Errorf("%s: %+v %v", change, v, err)
		}
		if r := w.Begun[0]; r.Type != activity.ServerChange || r.Metadata.Action != want || r.ServerName != "s" {
			t.Errorf("%s: recorded %+v", change, r)
		}
	}
}

func second[T any](_ T, err error) error { return err }
