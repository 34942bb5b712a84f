package store

import (
	"fmt"
	"strings"
	"testing"

	"feedbox/domain/fault"
	"feedbox/tests/fuzzseed"
)

func TestSessionTokensMerge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		client  string
		replies []string
		want    string
	}{
		"nothing":                  {"", nil, ""},
		"the client's":             {"0:-1#5", nil, "0:-1#5"},
		"a newer one wins":         {"0:-1#5", []string{"0:-1#7"}, "0:-1#7"},
		"an older one is left out": {"0:-1#5", []string{"0:-1#4"}, "0:-1#5"},
		"numbers, not text":        {"0:-1#9", []string{"0:-1#10"}, "0:-1#10"},
		"ranges are kept apart":    {"0:-1#5", []string{"1:-1#2", "0:-1#6"}, "0:-1#6,1:-1#2"},
		"a newer version wins":     {"0:3#9#1=4", []string{"0:4#2#1=1#2=8"}, "0:4#2#1=1#2=8"},
		"the older form":           {"0:5", []string{"0:6"}, "0:6"},
		"an unreadable reply":      {"0:-1#5", []string{"gibberish"}, "0:-1#5"},
		"an empty reply":           {"0:-1#5", []string{""}, "0:-1#5"},
	} {
		token, err := ParseSession(test.client)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, reply := range test.replies {
			token.Merge(reply)
		}
		if got := token.String(); got != test.want {
			t.Errorf("%s: %q; want %q", name, got, test.want)
		}
		if option := token.Option(); (option == nil) != (test.want == "") {
			t.Errorf("%s: option %v", name, option)
		}
	}
}

func TestForeignSessionTokensAreInvalid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"x", ":", "0:", ":1", "0:x", "0:-1#", "0:-1#x", "0:1#2,", ",0:1#2", "0:1#2;1:3#4", "0:1#2\r\nX: y", "0 :1#2",
		"0:99999999999999999999", strings.Repeat("0", 9000) + ":1#1", manyRanges(129),
	} {
		if _, err := ParseSession(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.40q: %v; want invalid", text, err)
		}
	}
	if _, err := ParseSession(manyRanges(128)); err != nil {
		t.Errorf("128 ranges: %v", err)
	}
}

// A returned token is always accepted, for any number of ranges.
func TestMergedSessionTokenStaysWithinLimits(t *testing.T) {
	t.Parallel()
	token, err := ParseSession(manyRanges(128))
	if err != nil {
		t.Fatal(err)
	}
	token.Merge("zzz:-1#5")
	if got := token.String(); got != "zzz:-1#5" {
		t.Errorf("one range too many gives %q; want the last", got)
	}
	for i := range 200 {
		token.Merge(fmt.Sprintf("%d:-1#%s", i, "1#"+strings.Repeat("1", 100)))
		if _, err := ParseSession(token.String()); err != nil {
			t.Fatalf("after %d replies: %v", i, err)
		}
	}
}

func manyRanges(n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, string(rune('a'+i%26))+strings.Repeat("0", i/26)+":-1#1")
	}
	return strings.Join(parts, ",")
}

func TestMergingDoesNotChangeCopies(t *testing.T) {
	t.Parallel()
	token, _ := ParseSession("0:-1#5")
	copied := token
	token.Merge("0:-1#6")
	if copied.String() != "0:-1#5" {
		t.Errorf("the copy became %s", copied)
	}
}

func FuzzSessionToken(f *testing.F) {
	fuzzseed.Add(f)
	for _, seed := range []string{"", "0:-1#5", "0:3#9#1=4,1:2", "0:5", "x:y#z", "0:-1#5,0:-1#6"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseSession(text)
		if err != nil {
			return
		}
		wire := token.String()
		again, err := ParseSession(wire)
		if err != nil || again.String() != wire {
			t.Errorf("%q is written as %q, which is read as %q, %v", text, wire, again, err)
		}
		if strings.ContainsAny(wire, "\r\n ") {
			t.Errorf("%q has white space", wire)
		}
	})
}
