package ops

import (
	"context"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// pauseWait limits how long a pause waits until the cancelled calls have ended.
const pauseWait = 10 * time.Second

// PauseRequest is a request to pause all calls.
type PauseRequest struct {
	Reason string `json:"reason" doc:"Why calls are paused, at most 1000 bytes. Agents get it with each rejected call."`
}

// Example returns an example for the OpenAPI document.
func (PauseRequest) Example() string { return `{"reason": "an agent deletes the wrong files"}` }

// PauseView tells whether calls are paused.
type PauseView struct {
	Paused    bool       `json:"paused"`
	Unknown   string     `json:"unknown,omitempty" doc:"Why MCPProxy cannot read whether calls are paused. Then paused is true, because MCPProxy rejects all calls. Absent if the state is known."`
	Reason    string     `json:"reason,omitempty"`
	By        string     `json:"by,omitempty" doc:"The actor who paused or resumed calls last. Absent if calls were never paused."`
	Via       string     `json:"via,omitempty" doc:"The surface that was used."`
	At        *time.Time `json:"at,omitempty"`
	Cancelled int        `json:"cancelled,omitempty" doc:"The number of held and running calls of this instance that the pause has cancelled. Only in the response to a pause."`
	Running   int        `json:"running,omitempty" doc:"The number of cancelled calls that have not ended yet. Only in the response to a pause."`
}

// PauseState returns whether calls are paused.
func (g *Gateway) PauseState(context.Context, Caller, Nothing) (PauseView, error) {
	s, err := g.Pause.Current()
	v := PauseView{Paused: s.Paused || err != nil, Reason: s.Reason, By: s.By, Via: s.Via}
	if !s.At.IsZero() {
		v.At = &s.At
	}
	if err != nil {
		v.Unknown = err.Error()
	}
	return v, nil
}

// PauseNotice returns the notice for agents while calls are paused; "" otherwise.
func (g *Gateway) PauseNotice() string {
	if p := g.Pause.Problem(); p != nil {
		return p.Message + " " + p.Hint
	}
	return ""
}

// PauseCalls pauses all calls. It takes effect even if it cannot be stored or recorded, which is then the error.
func (a *Admin) PauseCalls(ctx context.Context, c Caller, in PauseRequest) (v PauseView, err error) {
	if len(in.Reason) > pause.MaxReason {
		return v, problem.Newf(problem.ReasonTooLong, "reason exceeds the maximum length of %d bytes", pause.MaxReason)
	}
	s := pause.State{Reason: in.Reason, By: c.Actor.String(), Via: string(c.Source), At: time.Now().UTC()}
	if before, _ := a.Pause.Current(); before.Paused && in.Reason == "" {
		s = before // a repeated command without a reason must not erase the first one
	}
	var cancelled int
	pauseNow := func() error {
		var err error
		if cancelled, err = a.Pause.Pause(ctx, s); err != nil {
			return problem.Newf(problem.ServerUnavailable, "Calls are paused, but the pause could not be stored: %v. It ends when MCPProxy stops, unless another attempt to pause succeeds.", err).
				WithHint("Fix the cause, then pause again.").Because(err)
		}
		return nil
	}
	err = a.runUserAction(c, newActionRecord(c, activity.System, tool.ID{}, "pause", in.Reason), pauseNow)
	if c.IsUser() && err != nil && problem.From(err).Code == problem.AuditUnavailable {
		if err := pauseNow(); err != nil {
			return v, err
		}
		return v, problem.New(problem.AuditUnavailable, "Calls are paused, but the pause could not be recorded: the activity log cannot be written.", "See `mcpproxy doctor`.").Because(err)
	}
	if err != nil {
		return v, err
	}
	wait, cancel := context.WithTimeout(ctx, pauseWait)
	defer cancel()
	left := a.Pause.AwaitIdle(wait)
	v, err = a.PauseState(ctx, c, Nothing{})
	v.Cancelled, v.Running = cancelled, left
	return v, err
}

// ResumeCalls allows calls again.
func (a *Admin) ResumeCalls(ctx context.Context, c Caller, _ Nothing) (v PauseView, err error) {
	before, unknown := a.Pause.Current()
	if !before.Paused && unknown == nil {
		return a.PauseState(ctx, c, Nothing{})
	}
	err = a.runUserAction(c, newActionRecord(c, activity.System, tool.ID{}, "resume", ""), func() error {
		if err := a.Presence.RequireSigned(ctx, presence.NewClaim("resume all calls, paused at", before.At.UTC().Format(time.RFC3339Nano))); err != nil {
			return err
		}
		if err := a.Pause.Resume(ctx, pause.State{By: c.Actor.String(), Via: string(c.Source), At: time.Now().UTC()}); err != nil {
			return problem.Newf(problem.ServerUnavailable, "Calls stay paused, because the new state could not be stored: %v.", err).WithHint("Fix the cause, then resume again.").Because(err)
		}
		return nil
	})
	if err != nil {
		return v, err
	}
	return a.PauseState(ctx, c, Nothing{})
}
