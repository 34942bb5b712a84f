package console

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NoCommand returns the error for a command that cmd does not have; it suggests names of
// similar spelling.
func NoCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	err := fmt.Errorf("%s has no command %q", cmd.CommandPath(), name)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}
