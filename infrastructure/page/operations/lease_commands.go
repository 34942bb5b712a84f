package operations

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

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
					Facts: []page.Fact{{Name: "ranges", Value: fmt.Sprint(len(p.Snapshot.Ranges))}, {Name: "waiting now", Value: fmt.Sprint(p.Snapshot.Behind)}},
				}
				if command == CommandPause || command == CommandRestart {
					preview.Typed = string(command) + " all"
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
					{Name: "owner", Value: cmp.Or(row.Owner, "none")},
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
