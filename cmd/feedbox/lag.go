package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/console"
	"feedbox/infrastructure/wiring"
)

// lagView is one measurement.
type lagView struct {
	At     time.Time   `json:"at"`
	Ranges []rangeView `json:"ranges"`
	// Behind is the sum over all ranges whose lag is known, Oldest their greatest age.
	Behind    int64   `json:"behind"`
	Oldest    float64 `json:"oldestSeconds"`
	Retention string  `json:"retention"` // safe, warning or critical
}

type rangeView struct {
	Lease    string  `json:"lease"`
	Owner    string  `json:"owner"`
	Known    bool    `json:"known"`
	Behind   int64   `json:"behind"`
	Oldest   float64 `json:"oldestSeconds"`
	Health   string  `json:"health"`
	Failures int     `json:"failures,omitempty"`
	Error    string  `json:"error,omitempty"`
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
		Short: "Show how far the relay is behind",
		Long: `Show how far the relay is behind, range by range: how many transactions are not yet
behind the checkpoint, and how old the oldest of them is. Each look costs one small
read of the change feed per range.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.interval < 100*time.Millisecond || f.count < 0 {
				return usage(cmd, fmt.Errorf("--interval %s --count %d: the interval is at least 100ms, the count not negative", f.interval, f.count))
			}
			if !f.watch && cmd.Flags().Changed("interval") || !f.watch && cmd.Flags().Changed("count") {
				return usage(cmd, fmt.Errorf("--interval and --count go with --watch"))
			}
			return p.operate(cmd, false, long, func(ctx context.Context, cfg *config.Relay, o *wiring.Operator) error {
				if f.watch {
					return p.watchLag(ctx, cfg, o, f)
				}
				v, err := measureLag(ctx, cfg, o)
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
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "measure again and again until interrupted")
	cmd.Flags().DurationVar(&f.interval, "interval", 2*time.Second, "pause between two measurements")
	cmd.Flags().IntVar(&f.count, "count", 0, "end after so many measurements (0 = never)")
	return cmd
}

func measureLag(ctx context.Context, cfg *config.Relay, o *wiring.Operator) (lagView, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	lags, err := o.Leases.Lag(ctx)
	if err != nil {
		return lagView{}, err
	}
	v := lagView{At: time.Now().UTC(), Ranges: []rangeView{}}
	var oldest time.Duration
	for _, l := range lags {
		r := rangeView{
			Lease: leaseName(l.Range.String()), Owner: l.Owner, Known: l.Known, Behind: l.Transactions, Oldest: l.Age.Seconds(),
			Health: healthName(l.Health), Failures: l.Failures, Error: l.Error,
		}
		v.Ranges = append(v.Ranges, r)
		v.Behind += l.Transactions
		oldest = max(oldest, l.Age)
	}
	v.Oldest = oldest.Seconds()
	v.Retention = relay.Retention{TTL: cfg.EventTTL}.Level(oldest).String()
	return v, nil
}

func healthName(h changefeed.Health) string {
	if h == changefeed.Healthy {
		return "healthy"
	}
	return string(h)
}

func (p *program) showLag(v lagView, cfg *config.Relay) error {
	table := console.NewTable("RANGE", "OWNER", "BEHIND", "OLDEST", "HEALTH", "ERROR")
	for _, r := range v.Ranges {
		behind, oldest := any(r.Behind), console.Age(seconds(r.Oldest))
		if !r.Known {
			behind, oldest = "?", "?"
		}
		owner := r.Owner
		if owner == "" {
			owner = "(nobody)"
		}
		table.Row(r.Lease, owner, behind, oldest, r.Health, console.Short(r.Error, 60))
	}
	if err := table.Write(p.out, "there are no leases of processor "+cfg.Processor+" yet: no relay has started"); err != nil {
		return err
	}
	if v.Retention != relay.Safe.String() {
		p.say(console.FormatTable, "%s: the oldest unsent event is %s old, events are lost after %s", v.Retention, console.Age(seconds(v.Oldest)), cfg.EventTTL)
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
