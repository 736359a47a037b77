package gateway

import (
	"context"
	"encoding/json"
	"testing"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/problem"
)

// How a server is launched, or whether it is quarantined, is not changed key
// by key.
func TestChangeableKeys(t *testing.T) {
	w := newWorld(t, nil, full)
	w.gateway.Editor = w
	ctx := context.Background()
	for _, key := range []string{"command", "args", "env", "url", "headers", "working_dir", "quarantined", "enabled", "name", "", "Trust"} {
		if p := problem.From(second(w.gateway.ChangeServer(ctx, "s", key, json.RawMessage(`"x"`), aPerson))); p == nil || p.Code != problem.InvalidParameter {
			t.Errorf("%q: %v", key, p)
		}
	}
	if p := problem.From(second(w.gateway.ChangeServer(ctx, "t", "trust", nil, aPerson))); p == nil || p.Code != problem.ServerNotFound {
		t.Errorf("an unknown server: %v", p)
	}
	w.begun, w.ended = nil, nil
	if _, err := w.gateway.ChangeServer(ctx, "s", "disabled_tools", json.RawMessage(`["a*"]`), aPerson); err != nil {
		t.Fatal(err)
	}
	if r := w.begun[0]; r.Type != activity.ConfigChange || r.Metadata.Action != "set_disabled_tools" || r.Metadata.Detail != `["a*"]` || r.Actor != "admin" || w.ended[0].Status != activity.Success {
		t.Errorf("on record are %+v, %+v", w.begun, w.ended)
	}
	withKey := Caller{Actor: aPerson.Actor, Source: activity.SourceMCP} // no person all the same
	if v, err := w.gateway.AddServer(ctx, NewServer{Name: "new", Command: "c"}, withKey); err != nil || !v.Quarantined || v.Stage != StageLaunch {
		t.Fatalf("%+v %v", v, err)
	}
	for name, err := range map[string]error{
		"change":  second(w.gateway.ChangeServer(ctx, "new", "trust", json.RawMessage(`"auto"`), aPerson)),
		"enable":  second(w.gateway.EnableServer(ctx, "new", true, aPerson)),
		"restart": w.gateway.RestartServer(ctx, "new", aPerson),
	} {
		if p := problem.From(err); p == nil || p.Code != problem.Conflict {
			t.Errorf("%s of a proposal: %v", name, p)
		}
	}
}

func second[T any](_ T, err error) error { return err }
