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
	// ErrNotAsked says that nobody is there to be asked.
	ErrNotAsked = errors.New("this needs a confirmation, and there is no terminal to ask on")
	// ErrDeclined says that the answer was not yes.
	ErrDeclined = errors.New("not confirmed, nothing was done")
)

// Prompt asks a person.
type Prompt struct {
	In  io.Reader
	Out io.Writer
	Yes bool // the answer was given beforehand
}

// Confirm says what will happen and returns nil if the answer is the word yes. It
// asks only if In and Out are terminals, and returns ErrNotAsked otherwise.
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
	if _, err := fmt.Fprintf(p.Out, "%s\nType yes to go on: ", consequence); err != nil {
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
