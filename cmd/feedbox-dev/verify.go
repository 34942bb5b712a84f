package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/lab/workload"
	"feedbox/infrastructure/process/console"
)

// evidence has the flags of verify.
type evidence struct {
	history, topic, store string
	format                console.Format
}

func verifyCommand(out io.Writer) *cobra.Command {
	e := &evidence{}
	cmd := &cobra.Command{
		Use:   "verify --history FILE --topic FILE [--store FILE]",
		Short: "Check in files whether the outbox kept its promises",
		Long: `Check in files whether the outbox kept its promises: the outcomes that clients of the
API saw (feedbox-dev load), the messages that a consumer received and the documents
of the store (feedbox-dev dump). Each has one JSON object per line:

  history  {"contact":"ID","outcome":"acked"}    an acknowledged change, or
           {"contact":"ID","outcome":"unknown"}  a change with unknown outcome, or
           {"outcome":"unknown"}                 a creation with unknown outcome
  topic    {"id":"EVENT","session":"KEY","subject":"ACTION","version":1,"sequence":1}
           in the order of arrival; a message that is redelivered, with the
           same "number" of the broker and the same id, counts once
  store    {"kind":"aggregate","id":"ID","version":1,"sequence":1}
           {"kind":"event","id":"EVENT","key":"KEY","action":"ACTION","version":1,"sequence":1}
           {"kind":"parked","id":"EVENT"}

Without the store, I1 and I5 cannot be checked, and I2 uses the topic as the store.
The table has I1 to I5, and each other promise that is broken.

Exit codes: 0 all promises kept, 2 wrong usage or input, 3 a promise is broken.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return e.verify(out) },
	}
	flags := cmd.Flags()
	flags.StringVar(&e.history, "history", "", "file with the outcomes that clients saw")
	flags.StringVar(&e.topic, "topic", "", "file with the messages of a consumer")
	flags.StringVar(&e.store, "store", "", "file with the documents of the store")
	flags.VarP(&e.format, "output", "o", "output format")
	return cmd
}

// errBroken ends a verify that found a broken promise; the output names it.
var errBroken = errors.New("a promise of the outbox is broken")

func (e *evidence) verify(out io.Writer) error {
	if e.history == "" || e.topic == "" {
		return usageError{errors.New("--history and --topic are required; feedbox-dev load and feedbox-dev dump write these files")}
	}
	run, repeated, err := e.read()
	if err != nil {
		return err
	}
	report := verify.Judge(run, e.store != "")
	report.Redelivered = repeated
	// Otherwise empty files would pass. If changes were acknowledged, an empty topic is a broken promise.
	if len(report.Breaches) == 1 && report.Breaches[0] == verify.NothingProven {
		return usageError{errors.New("nothing to check: the history has no acknowledged change; run feedbox-dev load while the API runs, then feedbox-dev dump")}
	}
	if e.format == console.FormatJSON {
		err = console.JSON(out, report)
	} else {
		err = printVerdict(out, report)
	}
	if err != nil {
		return err
	}
	if !report.Kept {
		return errBroken
	}
	return nil
}

// read builds a run from the files. repeated counts redelivered messages.
func (e *evidence) read() (run verify.Run, repeated int, err error) {
	run.Acked, run.Unknown, run.Parked = map[string]int{}, map[string]int{}, map[string]bool{}
	err = readRecords(e.history, checkOutcome, func(o workload.Outcome) {
		switch {
		case o.Outcome == workload.Acked:
			run.Acked[o.Contact]++
		case o.Contact == "":
			run.LostCreates++
		default:
			run.Unknown[o.Contact]++
		}
	})
	if err != nil {
		return run, 0, err
	}
	type delivered struct { // with the id, because another topic or a new broker counts again from 1
		number int64
		id     string
	}
	known := map[delivered]bool{}
	err = readRecords(e.topic, checkMessage, func(m messageRecord) {
		d := delivered{m.Number, m.ID}
		if m.Number != 0 && known[d] {
			repeated++
			return
		}
		known[d] = true
		run.Messages = append(run.Messages, verify.Message{ID: m.ID, Session: m.Session, Subject: m.Subject, Version: m.Version, Sequence: m.Sequence})
	})
	if err != nil {
		return run, 0, err
	}
	if e.store == "" {
		run.StoreOfMessages()
		return run, repeated, nil
	}
	err = readRecords(e.store, checkStored, func(s storeRecord) { run.Add(verify.Document(s)) })
	return run, repeated, err
}

// printVerdict writes the verdict as a table, followed by the breaches.
func printVerdict(out io.Writer, r *verify.Verdict) error {
	table := console.NewTable("PROMISE", "BROKEN", "CHECKED")
	for _, p := range r.Promises {
		broken := fmt.Sprint(p.Broken)
		if !p.Tested {
			broken = "not checked"
		}
		table.Row(p.ID, broken, p.Text+": "+p.Checked)
	}
	if err := table.Write(out, ""); err != nil {
		return err
	}
	for _, breach := range r.Breaches {
		if _, err := fmt.Fprintln(out, console.Clean(breach)); err != nil {
			return err
		}
	}
	return nil
}
