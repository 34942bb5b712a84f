package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// lagView is one measurement.
type lagView struct {
	At     time.Time   `json:"at"`
	Ranges []rangeView `json:"ranges"`
	// The sum and the highest age over all ranges with a known lag. Unknown is the number of the
	// others.
	Behind  int64   `json:"behind"`
	Oldest  float64 `json:"oldestSeconds"`
	Unknown int     `json:"unknown"`
	// Uncovered has the parts of the key space without a lease. Nothing measures their lag.
	Uncovered []string `json:"uncovered,omitempty"`
	Retention string   `json:"retention"` // safe, warning or critical; unknown if a lag is not known and no known one is one of the latter
}

type rangeView struct {
	Lease string `json:"lease"`
	Range string `json:"range"`
	Owner string `json:"owner"`
	// Behind and Oldest are null if they are not known.
	Known  bool     `json:"known"`
	Behind *int64   `json:"behind"`
	Oldest *float64 `json:"oldestSeconds"`
	// LastKnown is the last lag that was known, with --watch.
	LastKnown *knownLag `json:"lastKnown,omitempty"`
	// Checkpoint and Delivered are LSNs. Everything up to Checkpoint was handled. Delivered
	// is the last handled change; it is ahead of Checkpoint while a key waits.
	Checkpoint int64   `json:"checkpoint"`
	Delivered  int64   `json:"delivered"`
	Handled    int64   `json:"handled"` // documents, in total
	Health     string  `json:"health"`
	Silent     float64 `json:"silentSeconds,omitempty"` // of the owner
	Failures   int     `json:"failures,omitempty"`
	Error      string  `json:"error,omitempty"`
}

type knownLag struct {
	At     time.Time `json:"at"`
	Behind int64     `json:"behind"`
	Oldest float64   `json:"oldestSeconds"`
}

type lagFlags struct {
	format   console.Format
	watch    bool
	interval time.Duration
	count    int
}

func (p *program) lagCommand() *cobra.Command {
	var f lagFlags
	cmd := &cobra.Command{
		Use:   "lag",
		Short: "Show the lag of the relay",
		Long: `Show the lag of the relay per range: the number of transactions that were not handled
at the last write of the lease, and the age of the oldest; – if that is not known.
CHECKPOINT and DELIVERED are positions (LSN). Everything up to the checkpoint was
delivered; DELIVERED is the last transaction that was delivered whole, which is ahead
while one contact waits and others continue. HEALTH is held while an open transaction
of the store holds back changes. Each measurement costs one small read of the change
feed per range. With --watch the title shows the documents handled per second: events
and the contacts stored with them, and – shows the age of the last known lag.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.interval < 100*time.Millisecond || f.count < 0 {
				return usage(cmd, fmt.Errorf("--interval %s --count %d: give an interval of at least 100ms and a count from 0", f.interval, f.count))
			}
			if !f.watch && cmd.Flags().Changed("interval") || !f.watch && cmd.Flags().Changed("count") {
				return usage(cmd, fmt.Errorf("--interval and --count need --watch"))
			}
			return p.operate(cmd, false, long, func(ctx context.Context, cfg *config.Relay, o *operator.Operator) error {
				if f.watch {
					return p.watchLag(ctx, cfg, o, f)
				}
				v, err := measureLag(ctx, o)
				if err != nil {
					return err
				}
				if f.format == console.FormatJSON {
					return console.JSON(p.out, v)
				}
				return p.showLag(v, cfg)
			})
		},
	}
	outputFlag(cmd, &f.format)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "repeat until interrupted")
	cmd.Flags().DurationVar(&f.interval, "interval", 2*time.Second, "time between measurements")
	cmd.Flags().IntVar(&f.count, "count", 0, "stop after this many measurements (0 = never)")
	return cmd
}

func measureLag(ctx context.Context, o *operator.Operator) (lagView, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	measured, err := o.Measure(ctx)
	if err != nil {
		return lagView{}, err
	}
	v := lagView{At: measured.At, Ranges: []rangeView{}, Behind: measured.Behind, Oldest: measured.Oldest.Seconds(), Unknown: measured.Unknown, Uncovered: measured.Uncovered, Retention: measured.Level.String()}
	if measured.Level == relay.Safe && measured.Handled().IsZero() {
		v.Retention = "unknown"
	}
	for _, r := range measured.Ranges {
		if r.State != changefeed.LeaseLive && r.State != changefeed.LeaseSplit {
			continue
		}
		var behind *int64
		var oldest *float64
		if r.Lag.Known {
			behind, oldest = new(r.Lag.Transactions), new(r.Lag.Age.Seconds())
		}
		v.Ranges = append(v.Ranges, rangeView{
			Lease: changefeed.LeaseName(r.ID), Range: r.Range.String(), Owner: r.Lag.Owner, Known: r.Lag.Known, Behind: behind, Oldest: oldest,
			Checkpoint: r.LSN, Delivered: max(r.LSN, r.Delivered), Handled: r.Handled,
			Health: healthOf(r, v.At), Silent: r.Silent.Seconds(), Failures: cmp.Or(r.Lag.Failures, r.Failures), Error: cmp.Or(r.Lag.Error, r.Error),
		})
	}
	return v, nil
}

func (p *program) showLag(v lagView, cfg *config.Relay) error {
	table := console.NewTable("LEASE", "OWNER", "BEHIND", "OLDEST", "CHECKPOINT", "DELIVERED", "HEALTH")
	table.Paint = p.paintStatus(6)
	for _, r := range v.Ranges {
		behind, oldest := any("–"), "–"
		if r.Known {
			behind, oldest = *r.Behind, console.Age(seconds(*r.Oldest))
		}
		table.Row(r.Lease, console.Tail(cmp.Or(r.Owner, "(none)"), lagOwnerWidth), behind, oldest, r.Checkpoint, r.Delivered, r.Health)
	}
	if err := table.Write(p.out, "there are no leases of processor "+cfg.Processor+" yet: no relay has started"); err != nil {
		return err
	}
	if len(v.Uncovered) > 0 {
		p.say(console.FormatTable, "\nno lease covers %s: their events are not sent\nnext: feedbox leases ls%s", strings.Join(v.Uncovered, ", "), p.flag())
	}
	var failures []failure
	for _, r := range v.Ranges {
		if last := r.LastKnown; last != nil {
			p.say(console.FormatTable, "%s: not known; %s ago %d behind, oldest %s", r.Lease, console.Age(v.At.Sub(last.At)), last.Behind, console.Age(seconds(last.Oldest)))
		}
		failures = append(failures, failure{r.Lease, r.Error})
	}
	p.sayFailures(console.FormatTable, failures, "feedbox doctor checks the environment and prints fixes")
	if v.Retention == relay.Warning.String() || v.Retention == relay.Critical.String() {
		p.say(console.FormatTable, "%s: the oldest unsent event is %s old; events expire after %s", v.Retention, console.Age(seconds(v.Oldest)), cfg.EventTTL)
	}
	return nil
}

// lagOwnerWidth is narrower than ownerWidth because the table also has two positions.
const lagOwnerWidth = 14

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
