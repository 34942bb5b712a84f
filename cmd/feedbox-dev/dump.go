package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/spf13/cobra"
)

// dumping has the flags of dump.
type dumping struct {
	place

	topic, store, subscription string
	idle                       time.Duration
}

func dumpCommand(out io.Writer) *cobra.Command {
	d := &dumping{}
	cmd := &cobra.Command{
		Use:   "dump [--topic FILE] [--store FILE]",
		Short: "Dump a subscription and the store for verify",
		Long: `Dump the messages of a subscription and the documents of the store, for feedbox-dev
verify.

The messages are received and completed, in the order in which a consumer gets them.
The default is the subscription that feedbox-dev --record creates. Another one must
have sessions and no other consumer.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context(), out) },
	}
	flags := cmd.Flags()
	d.register(flags)
	flags.StringVar(&d.topic, "topic", "", "file to write the messages to")
	flags.StringVar(&d.store, "store", "", "file to write contacts, events and parked events to")
	flags.StringVar(&d.subscription, "subscription", recording, "subscription to empty")
	flags.DurationVar(&d.idle, "idle", 2*time.Second, "end when no message arrives for this long")
	return cmd
}

func (d *dumping) run(ctx context.Context, out io.Writer) error {
	switch {
	case d.topic == "" && d.store == "":
		return usageError{errors.New("give --topic, --store or both: the files to write")}
	case d.idle < 100*time.Millisecond:
		return usageError{fmt.Errorf("--idle %s: give at least 100ms", d.idle)}
	}
	e, err := d.findLiving(ctx)
	if err != nil {
		return err
	}
	if d.topic != "" {
		if err := e.broker.copies(); err != nil {
			return usageError{fmt.Errorf("--topic: %w; only --store can be dumped", err)}
		}
		n, err := record(d.topic, func(file *recordFile) error {
			return e.broker.empty(ctx, e, d.subscription, d.idle, func(m messageRecord) { file.add(m) })
		})
		if refusal, ok := errors.AsType[*azservicebus.Error](err); ok && refusal.Code == azservicebus.CodeNotFound {
			next := "create it, or omit --subscription"
			if d.subscription == recording {
				next = "start feedbox-dev with --record, which creates it and copies the messages from then on"
			}
			return fmt.Errorf("there is no subscription %s: %s", d.subscription, next)
		}
		if err != nil {
			return fmt.Errorf("dump the subscription %s: %w", d.subscription, err)
		}
		_, _ = fmt.Fprintf(out, "%d messages taken off the subscription %s\n", n, d.subscription)
	}
	if d.store != "" {
		n, err := record(d.store, func(file *recordFile) error {
			return e.store.documents(ctx, e, func(raw []byte) error {
				return file.addDocument(raw, func(why error) { _, _ = fmt.Fprintf(out, "omitted: event %v\n", why) })
			})
		})
		if err != nil {
			return fmt.Errorf("dump the store: %w", err)
		}
		_, _ = fmt.Fprintf(out, "%d documents of the containers %s and %s\n", n, e.Container, e.Parked)
	}
	return nil
}
