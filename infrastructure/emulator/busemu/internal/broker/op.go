package broker

// op is a unit of work that becomes durable as a whole. Its steps run in this order. With
// storage, ops go through each step in the order of submit.
type op interface {
	// write puts the op's records into w (nil in memory mode) and releases unused payloads. It
	// runs on the committer goroutine without locks.
	write(w *writer)
	// publish makes the result visible. In memory mode the caller of submit may hold the lock
	// of an inlet, or of the holder that messages leave. publish must therefore take only
	// locks that come after those.
	publish(later *callbacks)
	// finish reports the outcome. It runs without locks.
	finish(err error)
}

// callbacks collects calls to be made when the caller has released its locks. The zero value
// is empty.
type callbacks struct {
	first op
	ops   []op
	funcs []func()
	group *opGroup // of a transaction: receives the ops submitted meanwhile
}

func (c *callbacks) finish(o op) {
	if c.first == nil {
		c.first = o
		return
	}
	c.ops = append(c.ops, o)
}

func (c *callbacks) call(f func()) { c.funcs = append(c.funcs, f) }

// run makes the collected calls. They must not collect others.
func (c *callbacks) run() {
	if c.first != nil {
		c.first.finish(nil)
	}
	for _, o := range c.ops {
		o.finish(nil)
	}
	for _, f := range c.funcs {
		f()
	}
}

// waiting is an op that only has records and a callback: administration, session state.
type waiting struct {
	records func(w *writer)
	done    func(error)
}

func (o *waiting) write(w *writer) {
	if w != nil && o.records != nil {
		o.records(w)
	}
}

func (o *waiting) publish(*callbacks) {}

func (o *waiting) finish(err error) {
	if o.done != nil {
		o.done(err)
	}
}

// opGroup is several ops that become durable, visible and finished together.
type opGroup struct {
	ops  []op
	done func(error)
}

func (g *opGroup) write(w *writer) {
	for _, o := range g.ops {
		o.write(w)
	}
}

func (g *opGroup) publish(later *callbacks) {
	for _, o := range g.ops {
		o.publish(later)
	}
}

func (g *opGroup) finish(err error) {
	for _, o := range g.ops {
		o.finish(err)
	}
	g.done(err)
}
