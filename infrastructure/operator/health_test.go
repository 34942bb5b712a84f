package operator

import (
	"testing"
	"time"

	"feedbox/changefeed"
)

func TestConditionOfRange(t *testing.T) {
	t.Parallel()
	owned := changefeed.Lease{Owner: "host", State: changefeed.LeaseLive, Expiry: time.Minute}
	requested := owned
	requested.Request.Paused = true
	stopped := owned
	stopped.Health = changefeed.Stopped
	unread := owned
	unread.Health = changefeed.Unread
	withheld := changefeed.RangeLag{Lease: owned, Known: true, Withheld: 2, Age: time.Minute}
	for name, c := range map[string]struct {
		r    Range
		want Condition
	}{
		"owned":                    {Range{Lease: owned}, Healthy},
		"no owner":                 {Range{Lease: changefeed.Lease{State: changefeed.LeaseLive}}, Free},
		"paused":                   {Range{Lease: requested}, Paused},
		"all paused":               {Range{Lease: owned, Paused: true}, Paused},
		"stopped, all paused":      {Range{Lease: stopped, Paused: true}, Stopped},
		"not read":                 {Range{Lease: unread}, Unread},
		"held":                     {Range{Lease: owned, Lag: withheld}, Held},
		"held, paused":             {Range{Lease: requested, Lag: withheld}, Paused},
		"silent, all paused":       {Range{Lease: owned, Paused: true, Silent: time.Second}, Silent},
		"silent beyond its expiry": {Range{Lease: owned, Silent: 2 * time.Minute}, Expired},
	} {
		if got, _ := c.r.Condition(time.Now()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
