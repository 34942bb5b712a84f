package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"feedbox/tests/bench/result"
)

// screen shows the progress of the benchmark: on a terminal one changing line, elsewhere a
// line at the beginning and end of each stage and every 15 s. It is safe for concurrent use.
type screen struct {
	terminal bool
	began    time.Time
	all      int

	mu     sync.Mutex // guards all below
	out    io.Writer
	done   int
	title  string
	line   string // on the terminal now
	spoken time.Time
}

// quiet is the minimum time between two progress lines outside a terminal.
const quiet = 15 * time.Second

func newScreen(out io.Writer, all int) *screen {
	return &screen{terminal: isTerminal(out), began: time.Now(), all: all, out: out}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

func (s *screen) begin(stage string, run, runs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.title = fmt.Sprintf("[%d/%d] %s", s.done+1, s.all, stage)
	if runs > 1 {
		s.title += fmt.Sprintf(", run %d of %d", run, runs)
	}
	s.show("")
}

func (s *screen) step(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal || time.Since(s.spoken) >= quiet {
		s.show(what)
	}
}

func (s *screen) end(ran result.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	goals, missed := missed(ran.Figures)
	text := fmt.Sprintf("%.0f s, %d figures, %d of %d goals met", ran.Seconds, len(ran.Figures), goals-missed, goals)
	if ran.Failure != "" {
		text += ", FAILED: " + ran.Failure
	}
	s.show(text)
	s.done++
	if s.terminal {
		fmt.Fprintln(s.out)
		s.line = ""
	}
}

// Write writes output of stage processes on separate lines.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal && s.line != "" {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	n, err := s.out.Write(text)
	if s.terminal {
		fmt.Fprint(s.out, s.line)
	}
	return n, err
}

// show must be called with mu held.
func (s *screen) show(what string) {
	line := fmt.Sprintf("%5s %s", time.Since(s.began).Round(time.Second), s.title)
	if what != "" {
		line += ": " + what
	}
	s.spoken = time.Now()
	if !s.terminal {
		fmt.Fprintln(s.out, line)
		return
	}
	s.line = line
	fmt.Fprintf(s.out, "\r\x1b[K%s", line)
}
