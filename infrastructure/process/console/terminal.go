package console

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal tells whether a reader or writer is a terminal. A character device
// that is none, such as /dev/null, is not.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Clear is what a terminal takes for moving to the top left and erasing the rest.
const Clear = "\x1b[H\x1b[2J"
