package transport

import (
	"strconv"
	"testing"
)

// TestOutbox: first in, first out. One wake-up is enough for all, and entries beyond the limit are dropped.
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
		t.Fatalf("%q is beyond the bound", got)
	}
	if o.waiting != nil {
		t.Fatal("an empty box keeps memory")
	}
	o.putMessage([]byte("x"))
	<-o.some
	if got := string(o.takeMessage()); got != "x" {
		t.Fatalf("%q", got)
	}
}
