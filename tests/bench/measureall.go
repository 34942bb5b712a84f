package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"feedbox/tests/bench/measure"
	"feedbox/tests/bench/result"
)

// measureAll measures the chosen stages and prints the figures. It prints and stores the
// results so far even if a stage fails or the user interrupts.
func measureAll(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse(args, progress)
	if err != nil {
		return err
	}
	if s.profile != "" {
		if err := os.MkdirAll(s.profile, 0o755); err != nil { //nolint:gosec // everyone may read profiles
			return err
		}
	}
	file := &result.File{Format: result.Format, Machine: result.ThisMachine(), Quick: s.quick, Growth: s.growth, Started: time.Now().UTC()}
	screen := newScreen(progress, s.runs*len(s.stages))
	for n := range s.runs {
		for _, one := range s.stages {
			if ctx.Err() != nil {
				break
			}
			screen.begin(one.name, n+1, s.runs)
			ran := s.runProcess(ctx, one.name, n, screen)
			file.Add(one.name, ran)
			screen.end(ran)
		}
	}
	file.Seconds = time.Since(file.Started).Seconds()
	err = file.Table(out)
	if s.json != "" {
		err = errors.Join(err, file.Write(s.json))
	}
	if failures := file.Failures(); len(failures) > 0 {
		err = errors.Join(err, fmt.Errorf("%d runs of stages failed", len(failures)))
	}
	return errors.Join(err, ctx.Err())
}

// patience is the time that an interrupted stage has to clean up.
const patience = 10 * time.Second

// runProcess runs one stage in a separate process.
func (s *settings) runProcess(ctx context.Context, name string, n int, screen *screen) (ran result.Run) {
	began := time.Now()
	err := func() error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		args := []string{"stage", fmt.Sprintf("-quick=%t", s.quick), fmt.Sprintf("-growth=%t", s.growth)}
		if s.profile != "" {
			args = append(args, "-profile", filepath.Join(s.profile, fmt.Sprintf("%s-%d", name, n+1)))
		}
		cmd := exec.CommandContext(ctx, self, append(args, name)...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = patience
		cmd.Stderr = screen
		events, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		err = readEvents(events, func(e event) {
			switch {
			case e.Figure != nil:
				ran.Figures = append(ran.Figures, *e.Figure)
			case e.Failure != "":
				ran.Failure = e.Failure
			default:
				screen.step(e.Step)
			}
		})
		return errors.Join(err, cmd.Wait())
	}()
	if err != nil && ran.Failure == "" {
		ran.Failure = err.Error()
	}
	ran.Seconds = time.Since(began).Seconds()
	return ran
}

// missed counts the goals of a run that were not met.
func missed(figures []measure.Figure) (goals, missed int) {
	for _, f := range figures {
		if f.Goal != nil {
			goals++
		}
		if !f.Met() {
			missed++
		}
	}
	return goals, missed
}
