package operations

import (
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

// rangeActs are what owners of ranges are asked for. The query names one lease, or all.
func (s *Operations) rangeActs() []page.Act {
	ttl := s.o.Port.EventTTL()
	return []page.Act{
		s.steer(SteerPause, "Pause", "Owners keep %s and send nothing until it goes on. Events wait, and grow old.", fmt.Sprintf("What waits longer than %s is lost.", ttl)),
		s.steer(SteerResume, "Go on", "Owners of %s send again.", ""),
		s.steer(SteerRelease, "Release", "Owners give up %s once, at their next renewal; the relays decide who goes on.", ""),
		s.steer(SteerRetry, "Try again", "Owners of %s forget how often documents failed, and go on where they stopped.", ""),
		{Path: "replay", Title: "Rewind ranges", Verb: "Rewind", Danger: true, Preview: s.previewReplay, Do: s.doReplay},
	}
}

// all stands for every lease in a query.
const all = "all"

func (s *Operations) steer(verb SteerVerb, title, summary, warning string) page.Act {
	return page.Act{
		Path: string(verb), Title: title, Verb: title, Danger: verb == SteerPause,
		Preview: func(ctx context.Context, q url.Values) (*page.Preview, error) {
			if q.Get("lease") == all {
				p := s.reader.Look(ctx)
				preview := &page.Preview{
					Summary: fmt.Sprintf(summary, "all ranges"), Warning: warning, Stamp: fmt.Sprint(p.Paused),
					Facts: []page.Fact{{Name: "ranges", Value: fmt.Sprint(len(p.Standing.Ranges))}, {Name: "waiting now", Value: fmt.Sprint(p.Standing.Behind)}},
				}
				if verb == SteerPause {
					preview.Typed = "pause all"
				}
				return preview, nil
			}
			one, err := s.lease(ctx, q)
			if err != nil {
				return nil, err
			}
			row := newRangeRow(one, time.Now())
			return &page.Preview{
				Summary: fmt.Sprintf(summary, "the range "+row.Name), Warning: warning,
				Facts: []page.Fact{
					{Name: "range", Value: row.Range},
					{Name: "owner", Value: orNobody(row.Owner)},
					{Name: "condition", Value: string(row.Condition)},
					{Name: "behind", Value: fmt.Sprint(row.Behind)},
				},
				Stamp: strings.Join([]string{one.Owner, fmt.Sprint(one.Epoch), fmt.Sprint(one.Request.Paused)}, " "),
			}, nil
		},
		Do: func(ctx context.Context, o *page.Order) error {
			ids, words, err := s.leases(ctx, o.Values)
			if err != nil {
				return err
			}
			if err := s.o.Port.Steer(ctx, verb, ids...); err != nil {
				return err
			}
			s.reader.nudge()
			o.Say("Noted: " + string(verb) + " of " + words + ". Owners do it between two pages.")
			o.Next("See the ranges", "/ranges")
			return nil
		},
	}
}

func orNobody(owner string) string {
	if owner == "" {
		return "nobody"
	}
	return owner
}

func (s *Operations) lease(ctx context.Context, q url.Values) (operator.Range, error) {
	return rangeNamed(s.reader.Look(ctx), q.Get("lease"))
}

// leases are the ids a query means; none is all.
func (s *Operations) leases(ctx context.Context, q url.Values) (ids []string, words string, err error) {
	if q.Get("lease") == all {
		return nil, "all ranges", nil
	}
	one, err := s.lease(ctx, q)
	return []string{one.ID}, "the range " + q.Get("lease"), err
}

// resends is the preview of a replay.
type resends struct {
	Rows                      []resendRow
	Events, Covered, Refused  int
	Rewound, Left, NotWritten int
}

type resendRow struct {
	Lease string
	operator.Resend
}

// maxResends bounds the rows of a preview; the sums are of all.
const maxResends = 100

// plan reads what a replay would send again.
func (s *Operations) plan(ctx context.Context, q url.Values) (from time.Time, tokens []string, v resends, err error) {
	ago, err := time.ParseDuration(strings.TrimSpace(q.Get("ago")))
	if err != nil || ago <= 0 {
		return from, nil, v, &page.Refusal{Status: http.StatusBadRequest, Title: "How far back?", Detail: fmt.Sprintf("%q is no duration.", q.Get("ago")), Next: "Give one such as 10m or 2h."}
	}
	// Whole minutes: the preview and what is done mean the same time.
	from = time.Now().Add(-ago).Truncate(time.Minute)
	if text := q.Get("from"); text != "" {
		if from, err = time.Parse(time.RFC3339, text); err != nil {
			return from, nil, v, &page.Refusal{Status: http.StatusBadRequest, Title: "From when?", Detail: err.Error()}
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
		Summary: fmt.Sprintf("The checkpoints of %d ranges go back to %s, and the relays send everything since again: %d events.", v.Rewound, from.UTC().Format("2006-01-02 15:04Z"), v.Events),
		Facts: []page.Fact{
			{Name: "events sent again", Value: fmt.Sprint(v.Events)},
			{Name: "the topic drops", Value: fmt.Sprintf("%d, committed within its duplicate window of %s", v.Covered, s.o.Window)},
			{Name: "consumers may see twice", Value: fmt.Sprint(v.Events - v.Covered)},
			{Name: "ranges left alone", Value: fmt.Sprint(v.Left)},
		},
		Template: "resends.html", Data: v, Stamp: strings.Join(tokens, " "),
	}
	if v.Events == 0 {
		p.Blocked = "No event would be sent again."
	}
	if v.Events > v.Covered {
		p.Warning = "Consumers must drop what they know by its id or sequence."
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
	s.reader.nudge()
	o.Say(fmt.Sprintf("Noted: %d ranges go back after their current page, %d events are sent again.", v.Rewound, v.Events))
	o.Next("See the ranges", "/ranges")
	return nil
}
