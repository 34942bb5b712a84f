package operator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/changefeed"
)

func TestSilence(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	for written, want := range map[time.Duration]time.Duration{time.Second: 0, 8 * time.Second: 0, 9 * time.Second: 9 * time.Second, time.Minute: time.Minute, -time.Hour: 0} {
		l := changefeed.Lease{Owner: "a", Expiry: 20 * time.Second, Timestamp: now.Add(-written)}
		if got := silence(l, 5*time.Second, now); got != want {
			t.Errorf("written %s ago: silent %s, want %s", written, got, want)
		}
		l.Owner = ""
		if got := silence(l, 5*time.Second, now); got != 0 {
			t.Errorf("nobody is silent for %s", got)
		}
	}
}

// The doctor judges what is unsent by its age: against what a takeover takes, the time in
// which the topic drops what comes again, and the lifetime of events.
func TestDoctorJudgesByAge(t *testing.T) {
	assumed := Window{Length: 10 * time.Minute, Assumed: true}
	hour := Window{Length: time.Hour}
	for _, c := range []struct {
		age    time.Duration
		window Window
		status FindingStatus
		next   string
	}{
		{30 * time.Second, assumed, FindingOK, ""},
		{3 * time.Minute, assumed, FindingWarning, "feedbox lag --watch shows for what"},
		{14 * time.Minute, assumed, FindingWarning, "older than a duplicate window of 10m0s (assumed"},
		{14 * time.Minute, hour, FindingWarning, "feedbox lag --watch shows for what"},
		{61 * time.Minute, hour, FindingWarning, "older than the broker's duplicate window of 1h0m0s"},
		{30 * time.Second, Window{}, FindingOK, ""},
		{3 * time.Minute, Window{}, FindingWarning, "older than the broker's duplicate window of 0s"},
		{70 * time.Hour, hour, FindingWarning, "does not keep up"},
		{200 * time.Hour, hour, FindingFailed, "events will be lost"},
	} {
		if got := judgeAge(Finding{Status: FindingOK}, c.age, 240*time.Hour, c.window); got.Status != c.status || !strings.Contains(got.Next, c.next) {
			t.Errorf("%s, %s: %+v, want %+v", c.age, c.window, got, c)
		}
	}
}

func TestUncovered(t *testing.T) {
	lease := func(from, to string) changefeed.Lease {
		return changefeed.Lease{Range: changefeed.FeedRange{Min: from, Max: to}}
	}
	for name, c := range map[string]struct {
		leases []changefeed.Lease
		want   []string
	}{
		"none yet":        {nil, nil},
		"whole":           {[]changefeed.Lease{lease("", "FF")}, nil},
		"two":             {[]changefeed.Lease{lease("", "1F"), lease("1F", "FF")}, nil},
		"two spellings":   {[]changefeed.Lease{lease("", "1F"), lease("1F00", "FF")}, nil},
		"hole":            {[]changefeed.Lease{lease("", "1F"), lease("2F", "FF")}, []string{"1F-2F"}},
		"ends":            {[]changefeed.Lease{lease("1F", "2F")}, []string{"-1F", "2F-FF"}},
		"parent in split": {[]changefeed.Lease{lease("", "FF"), lease("", "1F"), lease("1F", "FF")}, nil},
	} {
		if got := Uncovered(c.leases); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
