package processor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"feedbox/tests/bench/measure"
)

// figuresFile names the file to which the tests of this package write their figures, one
// JSON object per line. quickRun asks for a short run.
const (
	figuresFile = "FEEDBOX_BENCH_FIGURES"
	quickRun    = "FEEDBOX_BENCH_QUICK"
)

// patience is the real time that the tests in virtual time may take.
const patience = 3 * time.Minute

// virtual runs the tests that measure in virtual time and adds their figures.
func virtual(ctx context.Context, r *measure.Run) (err error) {
	r.Step("balancing, takeover, idle requests and lanes in virtual time")
	dir, err := os.MkdirTemp("", "feedbox-bench-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "figures.json")
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout", patience.String(), "-run", "^TestVirtual", "feedbox/tests/bench/processor")
	cmd.Env = append(os.Environ(), figuresFile+"="+path)
	if r.Quick {
		cmd.Env = append(cmd.Env, quickRun+"=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("measure in virtual time: %w: %s", err, out)
	}
	figures, err := readFigures(path)
	if err != nil {
		return err
	}
	slices.SortStableFunc(figures, func(a, b measure.Figure) int { return strings.Compare(a.Name, b.Name) }) // the tests run in parallel
	r.Add(figures...)
	return nil
}

func readFigures(path string) ([]measure.Figure, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var figures []measure.Figure
	for decoder := json.NewDecoder(file); ; {
		var f measure.Figure
		switch err := decoder.Decode(&f); {
		case errors.Is(err, io.EOF):
			return figures, nil
		case err != nil:
			return nil, fmt.Errorf("read the figures of virtual time: %w", err)
		}
		figures = append(figures, f)
	}
}
