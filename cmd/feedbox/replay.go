package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/console"
)

// replayFlags are the flags of feedbox replay.
type replayFlags struct {
	format console.Format
	from   string
	key    string
	dryRun bool
	window time.Duration
	yes    bool
}

func (p *program) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay --from TIME | --key KEY",
		Short: "Send events again, after showing which",
		Long: `Send events again, after showing which.

--from moves the checkpoints back: the relays send everything since that time again.
--key sends the stored events of one key in order, from this process.

Events keep their message ids. The topic drops duplicates within its duplicate window;
consumers get the other events a second time and must drop them by id or sequence.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (f.from == "") == (f.key == "") {
				return usage(cmd, errors.New("give either --from or --key"))
			}
			if f.window <= 0 {
				return usage(cmd, errors.New("--window must be positive: give the duplicate detection window of the topic"))
			}
			if f.from != "" {
				return p.replayFrom(cmd, f)
			}
			return p.replayKey(cmd, f)
		},
	}
	outputFlag(cmd, &f.format)
	cmd.Flags().StringVar(&f.from, "from", "", "a time (2026-01-31T08:00:00Z) or an age (2h)")
	cmd.Flags().StringVar(&f.key, "key", "", "partition key, that is, the id of the contact")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show the events that would be sent")
	cmd.Flags().DurationVar(&f.window, "window", 10*time.Minute, "duplicate detection window of the topic")
	yesFlag(cmd, &f.yes)
	return cmd
}

// resendView is the output form of the events that would be sent again.
type resendView struct {
	Lease   string     `json:"lease,omitempty"`
	Owner   string     `json:"owner,omitempty"`
	Events  int        `json:"events"`
	Oldest  *time.Time `json:"oldest,omitempty"`
	Newest  *time.Time `json:"newest,omitempty"`
	Covered int        `json:"covered"`           // by the duplicate window
	Refused int        `json:"refused,omitempty"` // cannot be sent as they are
	Left    string     `json:"left,omitempty"`
}

func newResendView(r operator.Resend) resendView {
	v := resendView{Owner: r.Owner, Events: r.Events, Covered: r.Covered, Refused: r.Refused, Left: r.Left}
	if r.Lease != "" { // a sum has no lease
		v.Lease = changefeed.LeaseName(r.Lease)
	}
	if r.Events > 0 {
		oldest, newest := r.Oldest.UTC(), r.Newest.UTC()
		v.Oldest, v.Newest = &oldest, &newest
	}
	return v
}

// replayView is the plan of a replay and its result.
type replayView struct {
	resendView
	From    string       `json:"from,omitempty"`
	Key     string       `json:"key,omitempty"`
	Window  string       `json:"window"`
	Ranges  []resendView `json:"ranges,omitempty"`
	Missing []int64      `json:"missingSequences,omitempty"`
	DryRun  bool         `json:"dryRun"`
	Done    bool         `json:"done"`
}

// describe prints the plan in sentences.
func (p *program) describe(v replayView) {
	say := func(format string, args ...any) { p.say(console.FormatTable, format, args...) }
	if v.Refused > 0 {
		say("%d events cannot be sent as they are: they will be parked again, even if skipped before", v.Refused)
	}
	if v.Events == 0 {
		say("no event would be sent again")
		return
	}
	say("%d events would be sent again, committed from %s to %s", v.Events, console.Time(*v.Oldest), console.Time(*v.Newest))
	switch again := v.Events - v.Covered; {
	case again == 0:
		say("the duplicate window of %s covers all of them: the topic drops them", v.Window)
	case v.Covered == 0:
		say("the duplicate window of %s covers none of them: consumers get all of them a second time", v.Window)
	default:
		say("the duplicate window of %s covers %d of them; consumers may get the other %d a second time", v.Window, v.Covered, again)
	}
}
