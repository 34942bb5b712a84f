package relay

import (
	"context"
	"strings"

	"feedbox/tests/bench/measure"
)

var _, _ measure.Stage = Measure, Growth

// part is one of the things that are measured, each by itself.
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

// Parts are the names of what is measured.
func Parts() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// Measure measures the relay.
func Measure(ctx context.Context, r *measure.Run) error { return Only("")(ctx, r) }

// Only measures the parts with name in their names.
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
