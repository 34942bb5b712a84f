package console

import (
	"io"

	"github.com/schollz/progressbar/v3"
)

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
