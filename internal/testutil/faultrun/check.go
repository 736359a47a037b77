package faultrun

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// recordedCall is the log's information about a call.
type recordedCall struct {
	times  int
	status string
}

// compareLogWithCalls compares the log with what clients and server saw.
func (x *scenarioRun) compareLogWithCalls(ctx context.Context) error {
	x.awaitCondition(ctx, "the daemon is well after its start", time.Now(), daemonTimeout, x.daemon.checkReady)
	log, err := x.readCallLog()
	if err != nil {
		return err
	}
	r, l := x.report, x.load
	l.mu.Lock()
	defer l.mu.Unlock()
	for mark, told := range l.told {
		r.Calls++
		rec := log[mark]
		switch told {
		case acknowledged:
			r.Acknowledged++
			if rec.times == 0 {
				r.Lost++
				r.addProblem("%s was acknowledged and is not in the log", mark)
			} else if rec.status != "success" {
				r.Wrong++
				r.addProblem("%s was acknowledged and reads %s", mark, rec.status)
			}
		case refused:
			r.Refused++
			if l.reached[mark] > 0 {
				r.Wrong++
				r.addProblem("%s was refused and reached the server", mark)
			}
		}
	}
	for mark, n := range l.reached {
		r.Reached += n
		if log[mark].times == 0 && l.told[mark] != acknowledged {
			r.Lost++
			r.addProblem("%s reached the server and is not in the log", mark)
		}
	}
	for mark, rec := range log {
		r.Recorded += rec.times
		if rec.times > 1 {
			r.Doubled++
			r.addProblem("%s is in the log %d times", mark, rec.times)
		}
		if rec.status == "interrupted" {
			r.Interrupted++
		}
		if rec.status == "pending" {
			r.Wrong++
			r.addProblem("%s is pending after a restart", mark)
		}
	}
	return nil
}

// readCallLog reads the log of calls, by their marks.
func (x *scenarioRun) readCallLog() (map[string]recordedCall, error) {
	log := map[string]recordedCall{}
	for cursor := ""; ; {
		body, err := x.daemon.get("/api/v1/activity?limit=1000&cursor=" + cursor)
		if err != nil {
			return nil, err
		}
		var page struct {
			Activities []struct {
				Type, Status string
				ErrorMessage string `json:"error_message"`
				Metadata     struct {
					Action string
					Intent struct{ Reason string }
				}
			}
			NextCursor string `json:"next_cursor"`
			Incomplete bool
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, err
		}
		if page.Incomplete {
			x.report.addProblem("the log is incomplete")
		}
		for _, a := range page.Activities {
			if strings.Contains(a.Metadata.Action, "damaged") {
				x.report.Damaged++
				x.report.addProblem("told of damage: %s", a.ErrorMessage)
			}
			if mark := a.Metadata.Intent.Reason; a.Type == "tool_call" && mark != "" {
				log[mark] = recordedCall{log[mark].times + 1, a.Status}
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return log, nil
		}
	}
}
