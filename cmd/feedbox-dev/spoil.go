package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

func spoilCommand(out io.Writer) *cobra.Command {
	p := &place{}
	cmd := &cobra.Command{
		Use:   "spoil",
		Short: "Store an event that cannot be sent, to try feedbox parked on",
		Long: `Store an event that cannot be sent, to try feedbox parked on: it has no action, as
if written by hand. The relay parks it after a few tries. Printed are shell lines that
set KEY and EVENT to what feedbox parked calls them:

  eval "$(feedbox-dev spoil)"
  feedbox parked show "$KEY"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.spoil(cmd.Context(), out) },
	}
	p.register(cmd.Flags())
	return cmd
}

func (p *place) spoil(ctx context.Context, out io.Writer) error {
	e, err := p.findLiving(ctx)
	if err != nil {
		return err
	}
	key, id, err := e.store.spoil(ctx, e, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, exports("KEY", key, "EVENT", id))
	return err
}
