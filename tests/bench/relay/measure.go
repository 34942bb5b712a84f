package relay

import (
	"context"
	"strings"

	"feedbox/tests/bench/measure"
)

var _, _ measure.Stage = Measure, Growth

// part is a part of the stage that can be measured separately.
type part struct {
	name    string
	measure measure.Stage
}

func parts() []part {
	var all []part
	for _, v := range variants {
		all = append(all, part{"throughput " + v.name, func(ctx context.Context, r *measure.Run) error { return throughput(ctx, r, v) }})
	}
	return append(all, part{"latency", latency}, part{"idle", idle}, part{"consumer kit", kit})
}

// Parts returns the names of all parts.
func Parts() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// Measure measures the relay.
func Measure(ctx context.Context, r *measure.Run) error { return Only("")(ctx, r) }

// Only measures the parts whose names contain name.
func Only(name string) measure.Stage {
	return func(ctx context.Context, r *measure.Run) error {
		for _, p := range parts() {
			if !strings.Contains(p.name, name) {
				continue
			}
			if err := p.measure(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}
}
