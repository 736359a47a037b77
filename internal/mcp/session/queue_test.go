package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestQueueIsBounded(t *testing.T) {
	event := func(i, size int) Event {
		return Event{Method: fmt.Sprint(i), Params: json.RawMessage(strings.Repeat("1", size))}
	}
	for name, tt := range map[string]struct {
		q    *EventQueue
		put  []Event
		want string // the methods of the queued events
	}{
		"the newest gives way":         {&EventQueue{Max: 2, Bytes: 100}, []Event{event(1, 1), event(2, 1), event(3, 1)}, "12"},
		"the oldest gives way":         {&EventQueue{Max: 2, Bytes: 100, DropOldest: true}, []Event{event(1, 1), event(2, 1), event(3, 1)}, "23"},
		"bytes, the newest gives way":  {&EventQueue{Max: 9, Bytes: 10}, []Event{event(1, 6), event(2, 6), event(3, 4)}, "13"},
		"bytes, the oldest gives way":  {&EventQueue{Max: 9, Bytes: 10, DropOldest: true}, []Event{event(1, 4), event(2, 4), event(3, 10)}, "3"},
		"larger than all":              {&EventQueue{Max: 9, Bytes: 10, DropOldest: true}, []Event{event(1, 4), event(2, 11)}, "1"},
		"what waits already":           {&EventQueue{Max: 9, Bytes: 10, Unique: true}, []Event{event(1, 1), event(1, 1), event(1, 2)}, "11"},
		"the zero value takes nothing": {&EventQueue{}, []Event{event(1, 0)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range tt.put {
				tt.q.Put(e)
			}
			got := ""
			for _, e := range tt.q.TakeAll() {
				got += e.Method
			}
			if got != tt.want {
				t.Errorf("got %q in the queue, want %q", got, tt.want)
			}
			if more := tt.q.TakeAll(); len(more) != 0 || tt.q.size != 0 {
				t.Errorf("%d events, %d bytes are left", len(more), tt.q.size)
			}
		})
	}
}

func TestQueueHasOneReader(t *testing.T) {
	q := &EventQueue{Max: 9, Bytes: 9}
	q.Put(Event{Method: "early"})
	for _, want := range []string{"early", "late"} { // one reader after the other
		ctx, stop := context.WithCancel(t.Context())
		opened, got := make(chan struct{}), make(chan string, 9)
		ended := make(chan error)
		go func() {
			ended <- q.PassEvents(ctx, nil, func(e Event) { got <- e.Method }, func() { close(opened) }, nil)
		}()
		<-opened
		if m := <-got; m != want {
			t.Errorf("got event %s, want %s", m, want)
		}
		if err := q.PassEvents(ctx, nil, nil, nil, nil); err != ErrHasReader || !q.HasReader() {
			t.Errorf("a second reader: %v", err)
		}
		stop()
		if err := <-ended; err != context.Canceled || q.HasReader() {
			t.Errorf("PassEvents returned %v", err)
		}
		q.Put(Event{Method: "late"})
	}
	over, why := make(chan struct{}), errors.New("why")
	close(over)
	if err := q.PassEvents(t.Context(), over, func(Event) {}, func() {}, func() error { return why }); err != why {
		t.Errorf("PassEvents returned %v", err)
	}
}

func TestQueueIsUsedAgain(t *testing.T) {
	q := &EventQueue{Max: 9, Bytes: 9}
	q.Put(Event{Method: "m", Params: json.RawMessage("123456789")})
	q.Reset()
	select {
	case <-q.ReadyChannel():
		t.Error("the queue wakes its next reader for an event from before the reset")
	default:
	}
	if !q.Put(Event{Method: "n", Params: json.RawMessage("123456789")}) {
		t.Error("a size from before the reset is left")
	}
}

func TestQueueKeepsTheOrder(t *testing.T) {
	const writers, each = 4, 500
	q := &EventQueue{Max: writers * each, Bytes: 1 << 20}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				q.Put(Event{Method: fmt.Sprint(w), Params: json.RawMessage(fmt.Sprint(i))})
			}
		})
	}
	next, seen := map[string]int{}, 0
	for come := q.ReadyChannel(); seen < writers*each; {
		<-come
		for _, e := range q.TakeAll() {
			if string(e.Params) != fmt.Sprint(next[e.Method]) {
				t.Fatalf("writer %s: got %s, want %d", e.Method, e.Params, next[e.Method])
			}
			next[e.Method]++
			seen++
		}
	}
	wg.Wait()
}
