package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"feedbox/tests/bench/measure"
)

// times has the processor time of each side so far.
type times struct{ relay, postgres, rabbitmq, consumer time.Duration }

func (t times) all() time.Duration { return t.relay + t.postgres + t.rabbitmq + t.consumer }

func (t times) since(before times) times {
	return times{t.relay - before.relay, t.postgres - before.postgres, t.rabbitmq - before.rabbitmq, t.consumer - before.consumer}
}

// timesOf reads from /proc the processor time of these processes and all their descendants,
// including ended ones. The resolution is 10 ms.
func timesOf(relay, postgres, rabbitmq int) (times, error) {
	children, used, err := processes()
	if err != nil {
		return times{}, err
	}
	var sum func(pid int) time.Duration
	sum = func(pid int) time.Duration {
		total := used[pid]
		for _, child := range children[pid] {
			total += sum(child)
		}
		return total
	}
	return times{sum(relay), sum(postgres), sum(rabbitmq), measure.CPU()}, nil
}

func processes() (children map[int][]int, used map[int]time.Duration, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return nil, nil, fmt.Errorf("processor time of other processes is told by Linux only: %w", os.ErrNotExist)
	}
	children, used = map[int][]int{}, map[int]time.Duration{}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		_, after, _ := strings.Cut(string(raw), ") ") // after the name, which may contain spaces
		fields := strings.Fields(after)
		if len(fields) < 15 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
		for _, field := range fields[11:15] { // its own, and that of its children that have ended
			ticks, _ := strconv.ParseInt(field, 10, 64)
			used[pid] += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return children, used, nil
}
