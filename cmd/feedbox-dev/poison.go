package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

func poisonCommand(out io.Writer) *cobra.Command {
	return onRunning(&cobra.Command{
		Use:   "poison",
		Short: "Store an event that cannot be sent",
		Long: `Store an event that cannot be sent, to try feedbox parked: it has no action, as if
written by hand. The relay parks it after a few attempts. The output sets the shell
variables KEY and EVENT:

  eval "$(feedbox-dev poison)"
  feedbox parked show "$KEY"`,
	}, func(ctx context.Context, e *endpoints) error {
		key, id, err := e.store.poison(ctx, e, 0)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, exports("KEY", key, "EVENT", id))
		return err
	})
}
