package transport

import (
	"strconv"
	"testing"
)

// TestOutbox checks that messages are returned in order, that one wake-up is enough for all, and that messages beyond
// the limit are dropped.
func TestOutbox(t *testing.T) {
	o := newOutbox()
	for i := range maxOutbox + 5 {
		o.putMessage([]byte(strconv.Itoa(i)))
	}
	<-o.some
	for i := range maxOutbox {
		if got := string(o.takeMessage()); got != strconv.Itoa(i) {
			t.Fatalf("message %d is %q", i, got)
		}
	}
	if got := o.takeMessage(); got != nil {
		t.Fatalf("got message %q beyond the limit", got)
	}
	if o.waiting != nil {
		t.Fatal("an empty outbox keeps memory")
	}
	o.putMessage([]byte("x"))
	<-o.some
	if got := string(o.takeMessage()); got != "x" {
		t.Fatalf("got %q", got)
	}
}
