package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// maxEvent is far above the size that a store accepts.
const maxEvent = 16 << 20

func (p *program) parkedEditCommand() *cobra.Command {
	var format console.Format
	var by, note, event, file, version string
	var wait time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use:   "edit KEY --event ID [--file FILE --version VERSION]",
		Short: "Correct a stored event and retry its key from the store",
		Long: `Correct a stored event and retry its key from the store. Without --file it prints the
stored document, and its version. Save and correct the document, then give it with --file
(- is standard input) and that version: if the stored event has changed meanwhile, or the
document is not the event of that key and id, nothing is written.

With --consumer it corrects the parked copy of the event, which is the only one of the
consumer, and the consumer retries its key.`,
		Args: oneArg("the key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var faults []error
			if event == "" {
				faults = append(faults, errors.New("--event is missing: give the id of an event of feedbox parked show "+args[0]))
			}
			if (file == "") != (version == "") {
				faults = append(faults, errors.New("--file and --version belong together: without both, the command prints the document and its version"))
			}
			if err := errors.Join(faults...); err != nil {
				return usage(cmd, err)
			}
			return p.operate(cmd, false, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				if file == "" {
					return p.printEditable(ctx, o, args[0], event)
				}
				document, err := p.readDocument(file)
				if err != nil {
					return err
				}
				if trouble := o.CheckEdit(args[0], event, document); trouble != "" {
					return console.Advise(fmt.Errorf("the corrected document cannot be sent: %s", trouble), "correct the document and repeat the command")
				}
				if _, err := o.Parked.Gate(ctx, args[0]); err != nil {
					return p.notParked(args[0], err)
				}
				effect := "a relay sends the events of the key from the store"
				if p.consumer != "" {
					effect = "the consumer handles the events of the key"
				}
				if err := p.confirm(yes, "The document of event %s of key %s is replaced, and %s.", event, args[0], effect); err != nil {
					return err
				}
				intent := relay.Intent{Verb: relay.VerbRetry, By: p.operatorName(by), Note: note, FromStore: p.consumer == ""}
				if p.consumer != "" {
					gate, err := o.ReplaceParked(ctx, args[0], event, document, version, intent)
					if err != nil {
						return p.notEdited(args[0], event, err)
					}
					p.say(format, "the corrected document of %s is stored", event)
					return p.noted(ctx, o, args[0], gate, intent, wait, format)
				}
				if err = o.ReplaceEvent(ctx, args[0], event, document, version); err != nil {
					return p.notEdited(args[0], event, err)
				}
				p.say(format, "the corrected document of %s is stored", event)
				return p.request(ctx, o, args[0], intent, wait, format)
			})
		},
	}
	outputFlag(cmd, &format)
	p.consumerFlag(cmd)
	intentFlags(cmd, &by, &note, &wait)
	cmd.Flags().StringVar(&event, "event", "", "id of the event")
	cmd.Flags().StringVar(&file, "file", "", "file with the corrected document, - for standard input")
	cmd.Flags().StringVar(&version, "version", "", "version of the document that was corrected")
	yesFlag(cmd, &yes)
	return cmd
}

// notEdited adds the next step to the reason for which a document was not replaced.
func (p *program) notEdited(key, event string, err error) error {
	switch {
	case fault.Is(err, fault.PreconditionFailed):
		return console.Advise(errors.New("the stored event has changed since its document was printed"), fmt.Sprintf("feedbox parked edit %s --event %s%s prints it again", key, event, p.flag()))
	case fault.Is(err, fault.NotFound) && p.consumer != "":
		return console.Advise(fmt.Errorf("event %s is not among the first parked events of key %s", event, key), "feedbox parked show "+key+p.flag())
	case fault.Is(err, fault.NotFound):
		return console.Advise(fmt.Errorf("event %s of key %s is no longer in the store", event, key), "feedbox parked retry "+key+p.flag()+" sends the events as they were parked")
	}
	return err
}

// printEditable prints the document to standard output and everything else to standard error, so that
// the document can be redirected.
func (p *program) printEditable(ctx context.Context, o *operator.Operator, key, event string) error {
	e, err := o.ReadEditable(ctx, key, event)
	if err != nil {
		return p.notEdited(key, event, err)
	}
	if _, err := fmt.Fprintln(p.out, console.Plain(indentedText(e.Document))); err != nil {
		return err
	}
	if e.Trouble != "" {
		_, _ = fmt.Fprintln(p.errOut, console.Plain("it cannot be sent: "+e.Trouble))
	}
	_, _ = fmt.Fprintln(p.errOut, console.Plain(fmt.Sprintf("next: save and correct the document, then feedbox parked edit %s --event %s%s --file FILE --version '%s'", key, event, p.flag(), e.Version)))
	return nil
}

// indentedText indents JSON and returns anything else as it is.
func indentedText(document []byte) string {
	var text bytes.Buffer
	if json.Indent(&text, document, "", "  ") != nil {
		return string(document)
	}
	return text.String()
}

const checkPath = "check the path of --file"

func (p *program) readDocument(file string) ([]byte, error) {
	from := p.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, console.Advise(err, checkPath)
		}
		defer func() { _ = f.Close() }() // it was only read
		from = f
	}
	document, err := io.ReadAll(io.LimitReader(from, maxEvent))
	if err != nil {
		return nil, console.Advise(fmt.Errorf("read the document: %w", err), checkPath)
	}
	if strings.TrimSpace(string(document)) == "" {
		return nil, errors.New("the document is empty: give the whole event")
	}
	return document, nil
}
