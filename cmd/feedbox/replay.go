package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/console"
)

// replayFlags are the choices of a replay.
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
		Short: "Send events again, after saying which",
		Long: `Send events again, after saying which.

--from moves the checkpoints back: the relays send everything since that time again.
--key sends the stored events of one key, in their order, from here.

Events keep their message ids. The topic drops those it has seen within its duplicate
window; consumers get the others a second time and must drop them by id or sequence.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (f.from == "") == (f.key == "") {
				return usage(cmd, errors.New("give either --from or --key"))
			}
			if f.window <= 0 {
				return usage(cmd, errors.New("--window must be positive: the topic's duplicate detection window"))
			}
			if f.from != "" {
				return p.replayFrom(cmd, f)
			}
			return p.replayKey(cmd, f)
		},
	}
	outputFlag(cmd, &f.format)
	cmd.Flags().StringVar(&f.from, "from", "", "a time such as 2026-01-31T08:00:00Z, or how long ago, such as 2h")
	cmd.Flags().StringVar(&f.key, "key", "", "partition key, which is the id of the contact")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only say what would be sent again")
	cmd.Flags().DurationVar(&f.window, "window", 10*time.Minute, "duplicate detection window of the topic")
	yesFlag(cmd, &f.yes)
	return cmd
}

// resendView is what would be sent again, as it is shown.
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
	v := resendView{Lease: nameOf(r.Lease), Owner: r.Owner, Events: r.Events, Covered: r.Covered, Refused: r.Refused, Left: r.Left}
	if r.Events > 0 {
		oldest, newest := r.Oldest.UTC(), r.Newest.UTC()
		v.Oldest, v.Newest = &oldest, &newest
	}
	return v
}

// nameOf is the short name of a lease; a sum has none.
func nameOf(lease string) string {
	if lease == "" {
		return ""
	}
	return changefeed.LeaseName(lease)
}

// replayView is the plan of a replay and what became of it.
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

// describe says the plan in sentences.
func (p *program) describe(v replayView) {
	say := func(format string, args ...any) { p.say(console.FormatTable, format, args...) }
	if v.Refused > 0 {
		say("%d events cannot be sent as they are: they are parked again, also if they were skipped", v.Refused)
	}
	if v.Events == 0 {
		say("no event would be sent again")
		return
	}
	say("%d events would be sent again, committed from %s to %s", v.Events, console.Time(*v.Oldest), console.Time(*v.Newest))
	switch again := v.Events - v.Covered; {
	case again == 0:
		say("the duplicate window of %s covers all of them: the topic drops those it has", v.Window)
	case v.Covered == 0:
		say("the duplicate window of %s covers none of them: consumers get all a second time", v.Window)
	default:
		say("the duplicate window of %s covers %d of them; consumers may get the other %d a second time", v.Window, v.Covered, again)
	}
}
