package cosmos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/bench/measure"
)

// startAndIdle measures the time from Start to the first answer, in this process, and the
// memory of a process with an idle emulator.
func startAndIdle(ctx context.Context, r *measure.Run, s *servers) error {
	r.Step("starting")
	times := make([]time.Duration, 21)
	for i := range times {
		var err error
		if times[i], err = startOnce(ctx); err != nil {
			return err
		}
	}
	slices.Sort(times)
	idle, err := s.start(ctx, "-tls")
	if err != nil {
		return err
	}
	defer idle.stop()
	resident, anonymous, err := idle.memory()
	if err != nil {
		return err
	}
	r.Add(
		measure.Cost("start to first answer", measure.Millis(times[len(times)/2]), "ms").Wants(measure.AtMost(15)).
			Noting("median of %d; worst %v", len(times), times[len(times)-1].Round(100*time.Microsecond)),
		measure.Cost("idle, resident", resident, "MB").Wants(measure.AtMost(20)).Noting("%.1f MB of it are not mapped from the program", anonymous),
	)
	return nil
}

func startOnce(ctx context.Context) (took time.Duration, err error) {
	began := time.Now()
	emulator, err := cosmosemu.Start(&cosmosemu.Options{TLS: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, emulator.Close()) }()
	if _, err := emulator.Client().NewQueryDatabasesPager("SELECT * FROM d", nil).NextPage(ctx); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// memory returns the resident memory of the process in MB, and the part that is not mapped
// from the program's file. Linux only.
func (c *child) memory() (resident, anonymous float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		into := map[string]*float64{"VmRSS": &resident, "RssAnon": &anonymous}[name]
		if into == nil {
			continue
		}
		kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return 0, 0, err
		}
		*into = kilobytes / 1024
	}
	return resident, anonymous, nil
}
