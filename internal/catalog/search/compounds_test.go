package search

import (
	"strings"
	"testing"
)

func TestSegments(t *testing.T) {
	tests := []struct{ word, want string }{
		{"createissue", "create issue"},
		{"getrelatedpeople", "get related people"},
		{"gettransactionsbyaccount", "get transactions by account"},
		{"issue", ""},
		{"description", ""}, // a common word is not split
		{"kubernetes", ""},
		{"postgresql", ""},
		{"get", ""},
		{"créateissue", ""},
		{"", ""},
		{strings.Repeat("get", 30), ""},
	}
	for _, tt := range tests {
		if got := strings.Join(splitCompound(tt.word), " "); got != tt.want {
			t.Errorf("splitCompound(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}

func TestFamilies(t *testing.T) {
	for _, family := range []string{"repository repositories repo repos", "convert converts converting conversion conversions", "person people persons", "configuration config configurations", "create created creator creates"} {
		forms := strings.Fields(family)
		for _, form := range forms[1:] {
			if toStem(form) != toStem(forms[0]) {
				t.Errorf("stem of %q is %q, stem of %q is %q", form, toStem(form), forms[0], toStem(forms[0]))
			}
		}
	}
	for _, word := range []string{"日本", "привет", "s3", "x"} {
		if toStem(word) != word {
			t.Errorf("stem of %q is %q, want the word unchanged", word, toStem(word))
		}
	}
}
