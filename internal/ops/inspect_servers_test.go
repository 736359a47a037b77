package ops

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/catalogtest"
)

func (w *inspectorWorld) server(name string) ServerDetail {
	w.T.Helper()
	d, err := w.inspect.Server(context.Background(), catalogtest.AdminCaller, ServerRef{Name: name})
	if err != nil {
		w.T.Fatal(err)
	}
	return d
}

// turned records a state change of a server.
func (w *inspectorWorld) turned(server, state string, ago time.Duration) {
	w.T.Helper()
	now := w.clock.Now()
	defer w.clock.Set(now)
	w.clock.Set(now.Add(-ago))
	r := activity.Record{Type: activity.ServerChange, Status: activity.Success, ServerName: server, Metadata: activity.Metadata{Action: state}}
	if err := w.log.Append(&r); err != nil {
		w.T.Fatal(err)
	}
	w.projected()
}

func TestServerCallStatistics(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, func(c *config.Config) {
		c.Servers = append(c.Servers, config.Server{Name: "quiet", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto})
	}, defined("show", "Show.", reads))
	now := w.clock.Now()
	for _, c := range []struct {
		ago    time.Duration
		n      int
		status activity.Status
	}{{30 * time.Hour, 7, activity.Failed}, {3 * time.Hour, 20, activity.Success}, {0, 2, activity.Failed}} {
		w.clock.Set(now.Add(-c.ago))
		w.called("s", "show", c.n, c.status, 40*time.Millisecond)
	}
	w.clock.Set(now)
	all, err := w.inspect.Servers(t.Context(), catalogtest.AdminCaller, Nothing{})
	if err != nil || len(all.Servers) != 2 || all.Servers[0].Name != "quiet" || all.Servers[0].Calls != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	calls := all.Servers[1].Calls
	if calls == nil || len(calls.Hours) != 24 || calls.Calls != 22 || calls.Errors != 2 || calls.P95 < 38 || calls.P95 > 42 {
		t.Fatalf("%+v", calls)
	}
	// A new hour may have begun since the test environment was created.
	if h := calls.Hours; h[23].Errors+h[22].Errors != 2 || h[20].Calls+h[19].Calls != 20 {
		t.Errorf("%+v", h)
	}
	plain, err := w.gateway.Servers(t.Context(), catalogtest.AdminCaller, Nothing{})
	for n := range plain.Servers {
		if err != nil || !reflect.DeepEqual(plain.Servers[n], all.Servers[n].ServerView) {
			t.Errorf("%+v, %v\n%+v", plain.Servers[n], err, all.Servers[n])
		}
	}
}

func TestServerConfigurationView(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	w := newInspectorWorld(t, func(c *config.Config) {
		s := &c.Servers[0]
		s.Trust = config.TrustManual
		s.Command, s.Args, s.Env = "npx", []string{"--token", secret}, map[string]string{"TOKEN": secret}
		s.DisabledTools, s.InferHints, s.CallTimeout = []string{"wipe*"}, "enforce", 90*time.Second
		s.HintOverrides = []config.HintOverride{{Pattern: "get_*", Hints: tool.Hints{ReadOnly: tool.True}}, {Pattern: "all_*", Hints: tool.Hints{Destructive: tool.False}}}
	}, defined("wipe", "Wipe.", destroys), defined("show", "Show.", reads))
	d := w.server("s")
	if d.Launch == nil || d.Launch.Command != "npx" || len(d.Launch.Args) != 2 || d.Launch.Args[1] == secret || !reflect.DeepEqual(d.Launch.Env, []string{"TOKEN"}) {
		t.Errorf("launch %+v", d.Launch)
	}
	if !reflect.DeepEqual(d.DisabledTools, []string{"wipe*"}) || d.EnabledTools != nil || d.InferHints != "enforce" || d.CallTimeout != "1m30s" ||
		string(d.HintOverrides) != `{"get_*":{"readOnlyHint":true},"all_*":{"destructiveHint":false}}` {
		t.Errorf("%+v", d)
	}
	if want := len(defined("wipe", "Wipe.", destroys) + defined("show", "Show.", reads)); d.DefinitionBytes != want || d.Waiting != 2 || d.Availability != nil {
		t.Errorf("%d bytes, want %d; %d wait; %v", d.DefinitionBytes, want, d.Waiting, d.Availability)
	}
	_, err := w.inspect.Server(t.Context(), catalogtest.AdminCaller, ServerRef{Name: "none"})
	if problem.From(err).Code != problem.ServerNotFound {
		t.Errorf("%v", err)
	}
}

// The availability of the last day begins with the state at its start. Other records about the server are not included.
func TestAvailability(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, nil, defined("show", "Show.", reads))
	for _, c := range []struct {
		state string
		ago   time.Duration
	}{
		{"failed", 70 * time.Hour}, {"ready", 50 * time.Hour}, {"tools_changed", 26 * time.Hour}, {"restart", 20 * time.Hour}, {"failed", 19 * time.Hour},
		{"failed", 18 * time.Hour}, {"ready", time.Hour}, {"idle", time.Minute},
	} {
		w.turned("s", c.state, c.ago)
		w.turned("other", "stopped", c.ago)
	}
	var got []string
	for _, turn := range w.server("s").Availability {
		got = append(got, turn.State+" "+w.clock.Now().Sub(turn.At).Round(time.Minute).String())
	}
	if want := []string{"ready 50h0m0s", "failed 19h0m0s", "ready 1h0m0s", "idle 1m0s"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// unreadable is a log with a damaged database.
type unreadable struct{}

var errUnreadable = errors.New("unreadable")

func (unreadable) List(context.Context, activity.Filter) (activity.RecordPage, error) {
	return activity.RecordPage{}, errUnreadable
}

func (unreadable) ServerUse(context.Context, time.Time, int) (map[string]activity.ServerUsage, error) {
	return nil, errUnreadable
}

func (unreadable) ToolUse(context.Context) (map[[2]string]activity.ToolUsage, error) {
	return nil, errUnreadable
}

func TestServersWithoutTheLog(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, nil, defined("show", "Show.", reads))
	w.inspect = NewInspector(w.gateway, unreadable{}, w)
	all, err := w.inspect.Servers(t.Context(), catalogtest.AdminCaller, Nothing{})
	if err != nil || len(all.Servers) != 1 || all.Servers[0].Calls != nil {
		t.Errorf("%+v, %v", all, err)
	}
	if d := w.server("s"); d.Launch == nil || d.Availability != nil {
		t.Errorf("%+v", d)
	}
	if l := w.tools(ToolQuery{}); len(l.Tools) != 1 || l.Tools[0].Calls != 0 {
		t.Errorf("%+v", l)
	}
}
