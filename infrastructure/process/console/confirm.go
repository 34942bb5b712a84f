package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Refusals of Confirm.
var (
	// ErrNotAsked means that there is no terminal for a prompt.
	ErrNotAsked = errors.New("confirmation needed, but there is no terminal")
	// ErrDeclined means that the answer was not yes.
	ErrDeclined = errors.New("not confirmed, nothing was changed")
)

// Prompt asks for confirmation on a terminal.
type Prompt struct {
	In  io.Reader
	Out io.Writer
	Yes bool // the answer was given beforehand
}

// Confirm shows the consequences and returns nil if the answer is the word yes. It returns
// ErrNotAsked if In or Out is not a terminal.
func (p Prompt) Confirm(consequence string) error {
	if p.Yes {
		return nil
	}
	if !IsTerminal(p.In) || !IsTerminal(p.Out) {
		return ErrNotAsked
	}
	return p.ask(consequence)
}

func (p Prompt) ask(consequence string) error {
	if _, err := fmt.Fprintf(p.Out, "%s\nType yes to continue: ", consequence); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	answer, err := bufio.NewReader(p.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if !strings.EqualFold(strings.TrimSpace(answer), "yes") {
		return ErrDeclined
	}
	return nil
}
