package servicebus

import (
	"context"
	"slices"
)

// divisible reports whether the batch in s.parts has more than one message.
func (s *sender) divisible() bool {
	return len(s.parts) > 1 || s.parts[0].end-s.parts[0].first > 1
}

// divide sends a refused batch again in smaller pieces: by key if it had several, else
// message by message. What stands before the refused message is accepted, what stands
// behind it in its key is not tried.
func (s *sender) divide(ctx context.Context) {
	parts := slices.Clone(s.parts)
	if len(parts) == 1 {
		p := parts[0]
		for i := p.first; i < p.end; i++ {
			s.deliver(ctx, []part{{group: p.group, first: i, end: i + 1}})
		}
		return
	}
	for _, p := range parts {
		s.deliver(ctx, []part{p})
	}
	refused := slices.ContainsFunc(parts, func(p part) bool { return s.call.results[p.group].Err != nil })
	if !refused && s.call.publisher.unpacked.CompareAndSwap(false, true) {
		s.call.publisher.opts.Logger.WarnContext(ctx, "the entity refuses batches of several keys; sending a batch per key from now on",
			"keys", len(parts))
	}
}
