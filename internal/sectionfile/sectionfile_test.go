package sectionfile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	got := Parse("# A comment.\n\nfirst: a head\n\ta b\n\n\t#c  d\n# Another.\nsecond\r\n\te\r\nempty\n")
	want := Sections{{"first: a head", []string{"a b", "#c  d"}}, {"second", []string{"e"}}, {"empty", nil}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "#c", "d"}, got.SectionByHead("first: a head").Words()); diff != "" {
		t.Error(diff)
	}
	if set := got.SectionByHead("second").WordSet(); len(set) != 1 || !set["e"] {
		t.Errorf("WordSet = %v", set)
	}
}

// TestFaults checks that a fault in an embedded file causes a panic, because it is a bug.
func TestFaults(t *testing.T) {
	for name, run := range map[string]func(){
		"no head":    func() { Parse("\ta\n") },
		"no section": func() { Parse("a\n").SectionByHead("b") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("got no panic")
				}
			}()
			run()
		})
	}
}
