package console

import (
	"io"
	"os"
	"strings"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Style marks text by colour for people. Its zero value leaves text as it is.
type Style struct{ on bool }

// NewStyle returns a style that colours if w is a terminal and noColour is false.
func NewStyle(w any, noColour bool) Style { return Style{on: !noColour && IsTerminal(w)} }

// NoColour reports whether environ (NAME=value) asks for text without colour: by NO_COLOR
// with any value but the empty one (no-color.org), or by TERM=dumb.
func NoColour(environ []string) bool {
	no := false
	for _, pair := range environ { // the last one of a name counts
		switch name, value, _ := strings.Cut(pair, "="); name {
		case "NO_COLOR":
			no = value != ""
		case "TERM":
			if value == "dumb" {
				return true
			}
		}
	}
	return no
}

// Bold marks names.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Faint marks details.
func (s Style) Faint(text string) string { return s.paint("2", text) }

// Good marks healthy values.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Warn marks values that need attention.
func (s Style) Warn(text string) string { return s.paint("33", text) }

// Bad marks failures.
func (s Style) Bad(text string) string { return s.paint("31", text) }

func (s Style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// IsTerminal reports whether a reader or writer is a terminal. Other
// character devices, such as /dev/null, are not.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Clear is the control sequence that moves to the top left and erases the rest.
const Clear = "\x1b[H\x1b[2J"

// Progress shows the progress of long work, on a terminal only. Its zero value shows
// nothing. It is not safe for concurrent use.
type Progress struct{ bar *progressbar.ProgressBar }

// NewProgress starts a bar with a name. total is the work's size in units, -1 if it is
// not known.
func NewProgress(w io.Writer, name string, total int64) *Progress {
	if !IsTerminal(w) {
		return &Progress{}
	}
	return &Progress{bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(name), progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100_000_000), // ns
	)}
}

// Add notes n more units.
func (p *Progress) Add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // work continues even if the bar cannot be drawn
	}
}

// Done takes the bar away.
func (p *Progress) Done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
