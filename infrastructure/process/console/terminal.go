package console

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a reader or writer is a terminal. Other
// character devices, such as /dev/null, are not.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Clear is the control sequence that moves to the top left and erases the rest.
const Clear = "\x1b[H\x1b[2J"
