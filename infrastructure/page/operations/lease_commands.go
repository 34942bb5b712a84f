package operations

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
)

// rangeActs returns the acts on ranges. The query names one lease, or all.
func (s *Operations) rangeActs() []page.Act {
	ttl := s.o.Port.EventTTL()
	return []page.Act{
		s.leaseAct(CommandPause, "Pause", "Owners keep %s but send nothing until resumed. Events wait and age.", fmt.Sprintf("Events that wait longer than %s are lost.", ttl)),
		s.leaseAct(CommandResume, "Resume", "Owners of %s send again.", ""),
		s.leaseAct(CommandRelease, "Release", "Owners release %s at their next renewal; then any relay may acquire it.", ""),
		s.leaseAct(CommandRetry, "Retry", "Owners of %s reset failure counts and resume stopped ranges.", ""),
		s.leaseAct(CommandRestart, "Restart", "Owners of %s start again from the beginning with a new history. Use it after a restore or failover.",
			"Every event that the container still has is sent again; feedbox leases restart counts them."),
		{Path: "replay", Title: "Rewind ranges", Verb: "Rewind", Danger: true, Preview: s.previewReplay, Do: s.doReplay},
	}
}

// allLeases in a query means every lease.
const allLeases = "all"

// leaseAct returns the act that notes a command. The stamp of its preview has owner and
// epoch, so that a takeover makes the preview stale.
func (s *Operations) leaseAct(command LeaseCommand, title, summary, warning string) page.Act {
	return page.Act{
		Path: string(command), Title: title, Verb: title, Danger: command == CommandPause || command == CommandRestart,
		Preview: func(ctx context.Context, q url.Values) (*page.Preview, error) {
			if q.Get("lease") == allLeases {
				p := s.reader.Latest(ctx)
				preview := &page.Preview{
					Summary: fmt.Sprintf(summary, "all ranges"), Warning: warning, Stamp: fmt.Sprint(p.Paused),
					Facts: []page.Fact{{Name: "ranges", Value: known(p.Ranges.Current(), len(p.Snapshot.Ranges))}, {Name: "waiting now", Value: known(p.Ranges.Current() && p.Snapshot.Unknown == 0, p.Snapshot.Behind)}},
				}
				if command == CommandPause || command == CommandRestart {
					preview.Typed = string(command) + " all"
				}
				if len(p.Snapshot.Ranges) == 0 && p.Ranges.Current() && command != CommandPause && command != CommandResume { // which last for ranges of the future
					preview.Blocked = "There are no ranges yet: no relay has started."
				}
				return preview, nil
			}
			one, err := s.lease(ctx, q)
			if err != nil {
				return nil, err
			}
			p := s.reader.Latest(ctx)
			row := newRangeRow(one, p)
			if command == CommandResume && p.Paused { // by a request that no lease has
				warning = "All ranges are paused: nothing is sent until all are resumed."
			}
			return &page.Preview{
				Summary: fmt.Sprintf(summary, "the range "+row.Name), Warning: warning,
				Facts: []page.Fact{
					{Name: "range", Value: row.Range},
					{Name: "owner", Value: cmp.Or(row.Owner, "none")},
					{Name: "condition", Value: string(row.Condition)},
					{Name: "behind", Value: known(row.Known, row.Behind)},
				},
				Stamp: fmt.Sprint(one.Owner, " ", one.Epoch, one.Request.Paused, p.Paused),
			}, nil
		},
		Do: func(ctx context.Context, o *page.Order) error {
			ids, words, err := s.leases(ctx, o.Values)
			if err != nil {
				return err
			}
			if err := s.o.Port.CommandLeases(ctx, command, ids...); err != nil {
				return err
			}
			s.reader.refresh()
			o.Say("Noted: " + string(command) + " of " + words + ". Owners carry it out between two pages.")
			o.Next("See the ranges", "/ranges")
			return nil
		},
	}
}

func known(ok bool, value any) string {
	if !ok {
		return "not known"
	}
	return fmt.Sprint(value)
}

func (s *Operations) lease(ctx context.Context, q url.Values) (operator.Range, error) {
	return rangeNamed(s.reader.Latest(ctx), q.Get("lease"))
}

// leases returns the ids that a query selects; no id means all.
func (s *Operations) leases(ctx context.Context, q url.Values) (ids []string, words string, err error) {
	if q.Get("lease") == allLeases {
		return nil, "all ranges", nil
	}
	one, err := s.lease(ctx, q)
	return []string{one.ID}, "the range " + q.Get("lease"), err
}

type resends struct {
	Rows                      []resendRow
	Events, Covered, Refused  int
	Rewound, Left, NotWritten int
}

type resendRow struct {
	Lease string
	operator.Resend
}

// maxResends bounds the rows of a preview; the sums include all ranges.
const maxResends = 100

func (s *Operations) plan(ctx context.Context, q url.Values) (from time.Time, tokens []string, v resends, err error) {
	ago, err := time.ParseDuration(strings.TrimSpace(q.Get("ago")))
	if err != nil || ago <= 0 {
		return from, nil, v, &page.Refusal{Status: http.StatusBadRequest, Title: "Invalid duration", Detail: fmt.Sprintf("%q is not a duration.", q.Get("ago")), Next: "Enter one such as 10m or 2h."}
	}
	// Whole minutes, so that preview and act compute the same time.
	from = time.Now().Add(-ago).Truncate(time.Minute)
	if text := q.Get("from"); text != "" {
		if from, err = time.Parse(time.RFC3339, text); err != nil {
			return from, nil, v, &page.Refusal{Status: http.StatusBadRequest, Title: "Invalid time", Detail: err.Error()}
		}
	}
	ids, _, err := s.leases(ctx, q)
	if err != nil {
		return from, nil, v, err
	}
	plan, err := s.o.Port.PlanReplay(ctx, from, s.o.Window, func(int) {})
	if err != nil {
		return from, nil, v, err
	}
	for _, r := range plan {
		name := changefeed.LeaseName(r.Lease)
		if len(ids) > 0 && changefeed.LeaseName(ids[0]) != name {
			continue
		}
		v.Events, v.Covered, v.Refused = v.Events+r.Events, v.Covered+r.Covered, v.Refused+r.Refused
		if r.Events > 0 {
			tokens = append(tokens, r.Lease)
		} else {
			v.Left++
		}
		if len(v.Rows) < maxResends {
			v.Rows = append(v.Rows, resendRow{name, r})
		} else {
			v.NotWritten++
		}
	}
	v.Rewound = len(tokens)
	return from, tokens, v, nil
}

func (s *Operations) previewReplay(ctx context.Context, q url.Values) (*page.Preview, error) {
	from, tokens, v, err := s.plan(ctx, q)
	if err != nil {
		return nil, err
	}
	q.Set("from", from.UTC().Format(time.RFC3339))
	p := &page.Preview{
		Summary: fmt.Sprintf("The checkpoints of %d ranges are moved back to %s, and the relays send all later events again: %d events.", v.Rewound, from.UTC().Format("2006-01-02 15:04Z"), v.Events),
		Facts: []page.Fact{
			{Name: "events sent again", Value: fmt.Sprint(v.Events)},
			{Name: "dropped by the topic", Value: fmt.Sprintf("%d, committed within its duplicate window of %s", v.Covered, s.o.Window)},
			{Name: "consumers may see twice", Value: fmt.Sprint(v.Events - v.Covered)},
			{Name: "ranges not rewound", Value: fmt.Sprint(v.Left)},
		},
		Template: "resends.html", Data: v, Stamp: strings.Join(tokens, " "),
	}
	if v.Events == 0 {
		p.Blocked = "No event would be sent again."
	}
	if v.Events > v.Covered {
		p.Warning = "Consumers must drop duplicates by id or sequence."
	}
	return p, nil
}

func (s *Operations) doReplay(ctx context.Context, o *page.Order) error {
	from, tokens, v, err := s.plan(ctx, o.Values)
	if err != nil {
		return err
	}
	if err := s.o.Port.Rewind(ctx, from, tokens...); err != nil {
		return err
	}
	s.reader.refresh()
	o.Say(fmt.Sprintf("Noted: %d ranges rewind after their current page, %d events are sent again.", v.Rewound, v.Events))
	o.Next("See the ranges", "/ranges")
	return nil
}
