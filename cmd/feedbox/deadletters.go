package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) deadLettersCommand() *cobra.Command {
	cmd := group("deadletters", "Show, resubmit, correct and discard dead letters of consumers",
		p.deadLettersLsCommand(), p.deadLettersShowCommand(), p.deadLettersResubmitCommand(), p.deadLettersEditCommand(), p.deadLettersDiscardCommand())
	cmd.Aliases = []string{"dead"}
	cmd.Long = `Show, resubmit, correct and discard dead letters of consumers.

A dead letter is an event that a consumer could not handle. It is in the dead-letter
queue of a subscription (Service Bus), of a group (RabbitMQ) or of a queue (SQS, SNS).
FEEDBOX_CONSUMERS names the consumers. Parked events were never sent: feedbox parked.`
	return cmd
}

// letterFlags are the flags of the commands for dead letters.
type letterFlags struct {
	format          console.Format
	consumer, admin string
	limit           int
	// The chosen letters.
	letter, key, reason string
	all                 bool
	by, note            string
	dryRun, yes         bool
}

func (f *letterFlags) declare(cmd *cobra.Command) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return f.checkLimit(cmd) }
	outputFlag(cmd, &f.format)
	filledFlag(cmd, &f.consumer, "consumer", "consumer, if there are several")
	cmd.Flags().IntVar(&f.limit, "limit", 1000, "number of letters to read, the oldest first")
	cmd.Flags().StringVar(&f.admin, "servicebus-admin", "", "URL of the management API, for an emulator")
}

// checkLimit refuses a limit that selects no letter.
func (f *letterFlags) checkLimit(cmd *cobra.Command) error {
	if f.limit < 1 {
		return usage(cmd, fmt.Errorf("--limit %d: give a number from 1", f.limit))
	}
	return nil
}

// choose declares the flags of acts.
func (f *letterFlags) choose(cmd *cobra.Command) {
	f.declare(cmd)
	filledFlag(cmd, &f.key, "key", "all letters of this key")
	filledFlag(cmd, &f.reason, "reason", "all letters with this reason")
	cmd.Flags().BoolVar(&f.all, "all", false, "all letters")
	f.record(cmd)
}

// record declares the flags of what an act records.
func (f *letterFlags) record(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.by, "by", "", "operator to record (default the login name)")
	cmd.Flags().StringVar(&f.note, "note", "", "reason to record")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show the effect")
	yesFlag(cmd, &f.yes)
}

// check reads the argument of a command with the flags of choose.
func (f *letterFlags) check(cmd *cobra.Command, args []string) error {
	ways := len(args)
	for _, given := range []bool{f.key != "", f.reason != "", f.all} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return usage(cmd, fmt.Errorf("%s takes one of: a letter, --key KEY, --reason REASON, --all", cmd.CommandPath()))
	}
	if len(args) == 1 {
		f.letter = args[0]
	}
	return nil
}

// chosen reports whether the flags choose a letter.
func (f *letterFlags) chosen(l operator.DeadLetter) bool {
	return f.all || f.letter != "" && l.ID == f.letter || f.key != "" && l.Key == f.key || f.reason != "" && l.Reason == f.reason
}

func (f *letterFlags) target() string {
	if f.all {
		return "all"
	}
	return f.letter + f.key + f.reason
}

// consumers returns the consumer of the flags, or all.
func (f *letterFlags) consumers(ctx context.Context, o *operator.Operator) ([]string, error) {
	if f.consumer != "" {
		return []string{f.consumer}, nil
	}
	if f.admin != "" {
		return o.ListConsumers(ctx, f.admin)
	}
	return o.Consumers(ctx, "")
}

// readLetters reads the dead letters of one consumer for an act.
func (p *program) readLetters(ctx context.Context, f *letterFlags, o *operator.Operator) ([]operator.DeadLetter, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	names, err := f.consumers(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(names) != 1 {
		return nil, console.Advise(fmt.Errorf("there are %d consumers: %s", len(names), strings.Join(names, ", ")), "name one with --consumer")
	}
	f.consumer = names[0]
	letters, more, err := o.ReadDeadLetters(ctx, f.consumer, f.limit)
	if err != nil {
		return nil, f.noSuchConsumer(ctx, o, err)
	}
	if more {
		p.say(f.format, "only the oldest %d letters are considered; raise --limit for more", len(letters))
	}
	return letters, nil
}

// listTimeout bounds the list of consumers in the advice of an error, because the management API may not be
// reachable from here.
const listTimeout = 5 * time.Second

// noSuchConsumer adds the consumers that the broker lists to an error about an unknown one, or the command
// that finds them.
func (f *letterFlags) noSuchConsumer(ctx context.Context, o *operator.Operator, err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if names, listErr := o.ListConsumers(ctx, f.admin); listErr == nil && len(names) > 0 {
		return console.Advise(err, "name one of these with --consumer: "+strings.Join(names, ", "))
	}
	return console.Advise(err, "feedbox deadletters ls without --consumer reads those of FEEDBOX_CONSUMERS, or those that the broker lists")
}

// oneLetter returns the letter with an id.
func (p *program) oneLetter(ctx context.Context, f *letterFlags, o *operator.Operator, id string) (l operator.DeadLetter, all []operator.DeadLetter, err error) {
	if all, err = p.readLetters(ctx, f, o); err != nil {
		return l, nil, err
	}
	i := slices.IndexFunc(all, func(l operator.DeadLetter) bool { return l.ID == id })
	if i < 0 {
		return l, nil, console.Advise(fmt.Errorf("consumer %s has no dead letter %s", f.consumer, id), "feedbox deadletters ls lists them")
	}
	return all[i], all, nil
}

// letterView is the output form of a dead letter.
type letterView struct {
	Consumer    string            `json:"consumer"`
	Letter      string            `json:"letter"`
	Event       string            `json:"event"`
	Key         string            `json:"key"`
	Action      string            `json:"action,omitempty"`
	Sequence    int64             `json:"sequence,omitempty"`
	Reason      string            `json:"reason"`
	Description string            `json:"description,omitempty"`
	EnqueuedAt  time.Time         `json:"enqueuedAt,omitzero"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        string            `json:"body,omitempty"`
}

func newLetterView(consumer string, l operator.DeadLetter, whole bool) letterView {
	v := letterView{
		Consumer: consumer, Letter: l.ID, Event: l.Event, Key: l.Key, Action: l.Action, Sequence: l.Sequence, Reason: l.Reason, Description: l.Description, EnqueuedAt: l.EnqueuedAt,
	}
	if whole {
		v.Headers, v.Body = l.Headers, string(l.Body)
	}
	return v
}

func (p *program) deadLettersLsCommand() *cobra.Command {
	var f letterFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the dead letters of consumers, the oldest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd, true, quick, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				names, err := f.consumers(ctx, o)
				if err != nil {
					return err
				}
				views := []letterView{}
				table := console.NewTable("CONSUMER", "LETTER", "EVENT", "KEY", "REASON", "SENT")
				var failures []failure
				for _, name := range names {
					letters, more, err := o.ReadDeadLetters(ctx, name, f.limit)
					if err != nil {
						return f.noSuchConsumer(ctx, o, err)
					}
					for _, l := range letters {
						if f.reason != "" && l.Reason != f.reason {
							continue
						}
						views = append(views, newLetterView(name, l, false))
						table.Row(name, l.ID, l.Event, l.Key, l.Reason, letterAge(l))
						failures = append(failures, failure{l.ID, l.Description})
					}
					if more {
						p.say(f.format, "%s has more than %d dead letters; raise --limit for more", name, f.limit)
					}
				}
				if err := p.write(f.format, views, table, "no dead letters"); err != nil {
					return err
				}
				p.sayFailures(f.format, failures, "correct the consumer, then feedbox deadletters resubmit --reason REASON")
				return nil
			})
		},
	}
	f.declare(cmd)
	filledFlag(cmd, &f.reason, "reason", "only letters with this reason")
	return cmd
}

func letterAge(l operator.DeadLetter) string {
	if l.EnqueuedAt.IsZero() {
		return "unknown"
	}
	return console.Age(time.Since(l.EnqueuedAt)) + " ago"
}

func (p *program) deadLettersShowCommand() *cobra.Command {
	var f letterFlags
	cmd := &cobra.Command{
		Use:   "show LETTER",
		Short: "Show the headers and the body of a dead letter",
		Args:  oneArg("a letter of feedbox deadletters ls"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.operate(cmd, true, quick, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				l, _, err := p.oneLetter(ctx, &f, o, args[0])
				if err != nil {
					return err
				}
				if f.format == console.FormatJSON {
					return console.JSON(p.out, newLetterView(f.consumer, l, true))
				}
				head := console.NewTable()
				head.Row("reason", l.Reason)
				head.Row("description", console.Middle(l.Description, 600))
				head.Row("key", l.Key)
				head.Row("event", l.Event)
				head.Row("sent", letterAge(l))
				for _, name := range slices.Sorted(maps.Keys(l.Headers)) {
					if !strings.HasPrefix(name, "DeadLetter") {
						head.Row(name, console.Middle(l.Headers[name], 600))
					}
				}
				if err := head.Write(p.out, ""); err != nil {
					return err
				}
				p.say(f.format, "\n%s", indentedText(l.Body))
				return nil
			})
		},
	}
	f.declare(cmd)
	return cmd
}

// audit writes who did what to dead letters and why. No store holds a record of them, so the caller of
// the command keeps its standard error.
func (p *program) audit(ctx context.Context, act string, f *letterFlags, done int, failures []operator.LetterFailure, err error) error {
	log := slog.New(slog.NewJSONHandler(p.errOut, nil)).With("act", "dead/"+act, "who", p.operatorName(f.by), "why", f.note, "of_consumer", f.consumer, "of_letters", f.target(), "letters", done)
	for _, one := range failures {
		err = errors.Join(err, fmt.Errorf("key %s stopped at letter %s, %d letters remain: %w", one.Key, one.Letter, one.Left, one.Err))
	}
	if err != nil {
		log.WarnContext(ctx, "operator act failed", "error", err)
		return console.Advise(err, "feedbox deadletters ls shows the letters that remain")
	}
	log.InfoContext(ctx, "operator act done")
	return nil
}
