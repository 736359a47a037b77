package activity

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestULIDsGrowWithAnyClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(rapid.Int64Range(0, 1<<45).Draw(t, "start"))
		s := newULIDGeneratorAfter(rapid.Int64Range(0, 1<<45).Draw(t, "floor"))
		last := s.formatULID()
		for _, step := range rapid.SliceOf(rapid.Int64Range(-1e12, 1e12)).Draw(t, "steps") {
			now = now.Add(time.Duration(step))
			id := s.nextULID(now)
			if id <= last {
				t.Fatalf("ID %s was generated after %s", id, last)
			}
			last = id
		}
	})
}

func TestULIDGivesItsTimeBack(t *testing.T) {
	now := time.Date(2026, 1, 15, 10, 30, 0, 123e6, time.UTC)
	s := ulidGenerator{}
	id := s.nextULID(now)
	ms, ok := parseULIDMillis(id)
	if len(id) != ulidLen || !ok || ms != now.UnixMilli() {
		t.Fatalf("parseULIDMillis(%s) = %d, %v, want %d", id, ms, ok, now.UnixMilli())
	}
	for _, bad := range []string{"", id[1:], id + "0", "I" + id[1:], "l" + id[1:]} {
		if _, ok := parseULIDMillis(bad); ok {
			t.Errorf("parseULIDMillis accepted %q", bad)
		}
	}
}

func TestULIDCountsUpOverTheEndOfItsRandomPart(t *testing.T) {
	s := newULIDGeneratorAfter(1000)
	ids := []string{s.formatULID(), s.nextULID(time.UnixMilli(5)), s.nextULID(time.UnixMilli(5))}
	if !slices.IsSorted(ids) {
		t.Fatalf("the IDs are not in order: %v", ids)
	}
	if ms, _ := parseULIDMillis(ids[1]); ms != 1001 {
		t.Fatalf("the next ID has the millisecond %d, want 1001", ms)
	}
}

func TestIsIDPrefix(t *testing.T) {
	for s, want := range map[string]bool{
		"0": true, "01JG2K4": true, "01JG2K4WZ3N8Q5R7T9V1X2Y3Z4": true,
		"": false, "01JG2K4WZ3N8Q5R7T9V1X2Y3Z40": false, "U": false, "01jg": false, "'": false,
	} {
		if IsIDPrefix(s) != want {
			t.Errorf("IsIDPrefix(%q) = %v", s, !want)
		}
	}
}
