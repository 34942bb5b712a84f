package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

func poisonCommand(out io.Writer) *cobra.Command {
	p := &place{}
	cmd := &cobra.Command{
		Use:   "poison",
		Short: "Store an event that cannot be sent",
		Long: `Store an event that cannot be sent, to try feedbox parked: it has no action, as if
written by hand. The relay parks it after a few attempts. The output sets the shell
variables KEY and EVENT:

  eval "$(feedbox-dev poison)"
  feedbox parked show "$KEY"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.poison(cmd.Context(), out) },
	}
	p.register(cmd.Flags())
	return cmd
}

func (p *place) poison(ctx context.Context, out io.Writer) error {
	e, err := p.findLiving(ctx)
	if err != nil {
		return err
	}
	key, id, err := e.store.poison(ctx, e, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, exports("KEY", key, "EVENT", id))
	return err
}
