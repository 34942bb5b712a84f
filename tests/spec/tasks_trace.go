package main

import (
	"cmp"
	"fmt"
	"slices"

	"feedbox/tests/spec/steps"
)

// A host completes several splits at the same time. In Lease a host completes one, so each attempt
// is a host of its own here. Attempts without a confirmed parent only create children.

// attempt is one attempt to complete a split.
type attempt struct {
	barrier  *call
	finish   *call
	activate map[string]*call // by child
	create   map[string]*call
}

// planned are lines to add after the effect of a write (*call), or after a step (*steps.Step).
type planned map[any][][]any

// planTasks finds the attempts, and the place of their lines.
func (b *behavior) planTasks() planned {
	lines := planned{}
	used := map[*call]bool{}
	busy := []int{} // by task: the step that ends it
	for _, c := range b.calls {
		if c.etag == "" || c.Op != "replace" || b.before(c).State != "split" || c.wrote.State != "split" {
			continue
		}
		a := &attempt{barrier: c, activate: map[string]*call{}, create: map[string]*call{}}
		parent := b.by[c.Lease][c.Match]
		until := len(b.steps)
		for _, o := range b.calls { // the next attempt of this host
			if o.Host == c.Host && o.Lease == c.Lease && o.begin > c.end && o.wrote != nil && o.wrote.State == "split" {
				until = min(until, o.begin)
			}
		}
		for _, o := range b.calls {
			child := slices.Contains(b.splits[c.Lease], o.Lease)
			switch {
			case o.Host != c.Host || o.etag == "" || o.wrote == nil:
			case child && o.Op == "create" && o.begin > parent.applied && o.begin < c.begin && !used[o]:
				a.create[o.Lease], used[o] = o, true
			case child && o.Op == "replace" && b.before(o).State == "pending" && o.begin > c.begin && o.begin < until:
				a.activate[o.Lease], used[o] = o, true
			case o.Lease == c.Lease && o.Match == c.etag && o.wrote.State == "done":
				a.finish = o
			}
		}
		b.planAttempt(lines, a, parent, &busy)
	}
	for _, o := range b.calls { // children that an attempt created before it stopped
		if o.etag != "" && o.Op == "create" && o.Lease != steps.Info && o.wrote.State == "pending" && !used[o] {
			b.planCreate(lines, o, &busy)
		}
		if o.etag != "" && o.Op == "replace" && b.before(o).State == "pending" && !used[o] {
			lines[o] = append(lines[o], []any{"unexplained", "activate", o.Lease})
		}
	}
	return lines
}

// task returns a free name for an attempt between two steps.
func (b *behavior) task(busy *[]int, from, to int) string {
	n := slices.IndexFunc(*busy, func(until int) bool { return until < from })
	if n < 0 {
		n = len(*busy)
		*busy = append(*busy, 0)
	}
	(*busy)[n] = to
	name := fmt.Sprintf("t%d", n+1)
	b.hosts[name] = true
	return name
}

func (b *behavior) planAttempt(lines planned, a *attempt, parent *call, busy *[]int) {
	c := a.barrier
	last := c.applied
	for _, o := range a.activate {
		last = max(last, o.applied)
	}
	if a.finish != nil {
		last = max(last, a.finish.applied)
	}
	name := b.task(busy, parent.applied, last)
	lines[parent] = append(lines[parent], []any{"begin", name, c.Lease})
	for _, child := range b.splits[c.Lease] {
		from, at := any(parent), parent.applied
		if o := a.create[child]; o != nil {
			from, at = o, o.applied
		}
		seen := at
		if o := a.activate[child]; o == nil {
			seen = b.lastSeen(c.Host, child, c.begin)
		} else if a.create[child] == nil || a.create[child].etag != o.Match {
			seen = b.learned[learnedKey(c.Host, child, o.Match)]
		}
		if seen > at {
			from = &b.steps[seen] // the host learned of this version later
		}
		lines[from] = append(lines[from], []any{"create", name, child})
	}
	lines[c] = append(lines[c], []any{"barrier", name})
	order := make([]*call, 0, len(a.activate))
	for _, o := range a.activate {
		order = append(order, o)
	}
	slices.SortFunc(order, func(x, y *call) int { return cmp.Compare(x.applied, y.applied) })
	for _, o := range order {
		lines[o] = append(lines[o], []any{"activate", name, o.Lease, b.position(o.wrote.LSN)})
	}
	if a.finish != nil {
		lines[a.finish] = append(lines[a.finish], []any{"complete", name})
		return
	}
	end := any(c)
	if len(order) > 0 {
		end = order[len(order)-1]
	}
	lines[end] = append(lines[end], []any{"abandon", name})
}

// lastSeen returns the last step before another one in which a host read a lease.
func (b *behavior) lastSeen(host, lease string, before int) int {
	for i := before; i > 0; i-- {
		if s := &b.steps[i]; s.Host == host && s.Do == "end" && slices.ContainsFunc(s.Records, func(r steps.Record) bool { return r.Lease == lease }) {
			return i
		}
	}
	return 0
}

// planCreate places the only line of an attempt that stopped before its barrier.
func (b *behavior) planCreate(lines planned, o *call, busy *[]int) {
	var parent *call
	for lease, children := range b.splits {
		if !slices.Contains(children, o.Lease) {
			continue
		}
		for _, p := range b.by[lease] {
			if p.wrote != nil && p.wrote.State == "split" && p.applied < o.applied && p.begin < o.begin && (parent == nil || p.applied > parent.applied) {
				parent = p
			}
		}
	}
	if parent == nil {
		lines[o] = append(lines[o], []any{"unexplained", "create", o.Lease})
		return
	}
	name := b.task(busy, parent.applied, o.applied)
	lines[parent] = append(lines[parent], []any{"begin", name, parent.Lease})
	lines[o] = append(lines[o], []any{"create", name, o.Lease}, []any{"abandon", name})
}
