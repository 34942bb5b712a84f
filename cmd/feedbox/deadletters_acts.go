package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) deadLettersResubmitCommand() *cobra.Command {
	var f letterFlags
	cmd := &cobra.Command{
		Use:   "resubmit LETTER | --key KEY | --reason REASON | --all",
		Short: "Send dead letters to their consumer again, in order",
		Long: `Send dead letters to their consumer again, after showing the effect. The letters of a
key go in order; a key with an older letter that was not chosen is left out.`,
		Args: f.check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd, true, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				letters, err := p.readLetters(ctx, &f, o)
				if err != nil {
					return err
				}
				return p.resubmit(ctx, "resubmit", &f, o, letters, nil)
			})
		},
	}
	f.choose(cmd)
	return cmd
}

// resubmissionView is the output form of a resubmission.
type resubmissionView struct {
	Consumer string   `json:"consumer"`
	Letters  int      `json:"letters"`
	Keys     int      `json:"keys"`
	Repeats  int      `json:"repeats"`
	LeftOut  []string `json:"leftOut,omitempty"`
	Effects  []string `json:"effects"`
	Sent     int      `json:"sent"`
	DryRun   bool     `json:"dryRun"`
}

// resubmit shows the effect, asks, and sends the chosen letters again.
func (p *program) resubmit(ctx context.Context, act string, f *letterFlags, o *operator.Operator, letters []operator.DeadLetter, bodies map[string][]byte) error {
	plan, err := o.PlanResubmission(ctx, f.admin, f.consumer, letters, f.chosen)
	if err != nil {
		return err
	}
	plan.Bodies = bodies
	v := resubmissionView{Consumer: f.consumer, Letters: plan.Letters, Keys: len(plan.Keys), Repeats: plan.Repeats, LeftOut: plan.LeftOut, Effects: plan.Effects, DryRun: f.dryRun}
	p.say(f.format, "%d dead letters of %d keys go to %s again", v.Letters, v.Keys, f.consumer)
	for _, key := range plan.LeftOut {
		p.say(f.format, "left out: key %s has an older letter that was not chosen", key)
	}
	if plan.Letters == 0 {
		return console.Advise(errors.New("no letter can be sent again"), "feedbox deadletters ls lists them; --key KEY chooses all letters of a key")
	}
	for _, effect := range plan.Effects {
		p.say(f.format, "- %s", strings.Join(console.Wrap(effect, console.Width(p.out)-2), "\n  "))
	}
	var failed error
	if !f.dryRun {
		if err := p.confirm(f.yes, "%d dead letters of %s are sent again.", v.Letters, f.consumer); err != nil {
			return err
		}
		bar := console.NewProgress(p.errOut, "sending", int64(v.Letters))
		failures, err := o.Resubmit(ctx, plan, func() { v.Sent++; bar.Add(1) })
		bar.Done()
		p.say(f.format, "sent again: %d of %d dead letters", v.Sent, v.Letters)
		failed = p.audit(ctx, act, f, v.Sent, failures, err)
	}
	if f.format == console.FormatJSON { // also after a failure, with the number of those that were sent
		return errors.Join(failed, console.JSON(p.out, v))
	}
	return failed
}

func (p *program) deadLettersEditCommand() *cobra.Command {
	var f letterFlags
	var file string
	cmd := &cobra.Command{
		Use:   "edit LETTER [--file FILE]",
		Short: "Correct the body of a dead letter and resubmit it",
		Long: `Correct the body of a dead letter and resubmit it. Without --file it prints the body.
Save and correct it, then give it with --file (- is standard input). The stored event
stays as it is: feedbox replay would send the wrong one again.`,
		Args: oneArg("a letter of feedbox deadletters ls"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.operate(cmd, true, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				l, all, err := p.oneLetter(ctx, &f, o, args[0])
				if err != nil {
					return err
				}
				if file == "" {
					return p.printBody(l.Body)
				}
				body, err := p.readDocument(file)
				if err != nil {
					return err
				}
				if json.Valid(l.Body) && !json.Valid(body) {
					return console.Advise(errors.New("the corrected body is not JSON"), "correct it and repeat the command")
				}
				f.letter = l.ID
				return p.resubmit(ctx, "edit", &f, o, all, map[string][]byte{l.ID: bytes.TrimSpace(body)})
			})
		},
	}
	f.declare(cmd)
	f.record(cmd)
	cmd.Flags().StringVar(&file, "file", "", "file with the corrected body, - for standard input")
	return cmd
}

// printBody prints a body that can be corrected and given back.
func (p *program) printBody(body []byte) error {
	text := indentedText(body)
	plain := console.Plain(text)
	if plain != text && !json.Valid(body) { // without JSON, an escape is another text
		return console.Advise(errors.New("the body is neither JSON nor plain text: printed, it would be another one"), "give the corrected body with --file")
	}
	_, err := fmt.Fprintln(p.out, plain)
	return err
}

func (p *program) deadLettersDiscardCommand() *cobra.Command {
	var f letterFlags
	cmd := &cobra.Command{
		Use:   "discard LETTER | --key KEY | --reason REASON | --all --note WHY",
		Short: "Remove dead letters permanently",
		Args:  f.check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(f.note) == "" {
				return usage(cmd, errors.New("--note is missing: give the reason to record"))
			}
			return p.operate(cmd, true, long, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				letters, err := p.readLetters(ctx, &f, o)
				if err != nil {
					return err
				}
				letters = slices.DeleteFunc(letters, func(l operator.DeadLetter) bool { return !f.chosen(l) })
				if len(letters) == 0 {
					return console.Advise(errors.New("no dead letter matches"), "feedbox deadletters ls lists them")
				}
				views := []letterView{}
				for _, l := range letters {
					views = append(views, newLetterView(f.consumer, l, true))
				}
				if !f.dryRun {
					if err := p.confirm(f.yes, "%d dead letters of %s are removed. The consumer never handles them.", len(letters), f.consumer); err != nil {
						return err
					}
				}
				if f.format == console.FormatJSON { // before the removal, because it is the only copy that remains
					if err := console.JSON(p.out, views); err != nil {
						return err
					}
				}
				if !f.dryRun {
					done := 0
					failures, err := o.Discard(ctx, f.consumer, letters, func() { done++ })
					p.say(f.format, "discarded: %d of %d dead letters", done, len(letters))
					return p.audit(ctx, "discard", &f, done, failures, err)
				}
				p.say(f.format, "%d dead letters would be discarded", len(letters))
				return nil
			})
		},
	}
	f.choose(cmd)
	return cmd
}
