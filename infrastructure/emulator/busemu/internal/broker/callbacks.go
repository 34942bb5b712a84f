package broker

// op is one unit of work that becomes durable as a whole. Its three steps run in
// this order; with storage, ops run through each step in the order of submit.
type op interface {
	// write puts the op's records into w (nil in memory mode) and lets go of payloads
	// that nothing refers to any more. Committer goroutine, no locks held.
	write(w *writer)
	// publish makes the result visible. In memory mode the caller of submit may hold
	// the lock of an inlet or of the holder that messages leave, so publish must take
	// only locks that come after those.
	publish(later *callbacks)
	// finish reports the outcome. No locks held.
	finish(err error)
}

// callbacks collects what is to be called once the caller has let go of its locks.
// The zero value is empty.
type callbacks struct {
	first op
	ops   []op
	funcs []func()
	group *opGroup // of a transaction: takes what is submitted meanwhile
}

func (c *callbacks) finish(o op) {
	if c.first == nil {
		c.first = o
		return
	}
	c.ops = append(c.ops, o)
}

func (c *callbacks) call(f func()) { c.funcs = append(c.funcs, f) }

// run calls everything that was collected. The calls may collect nothing more.
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

// submit makes o durable, visible and finished: at once in memory mode (finish is
// left to later), else in the background.
func (b *Broker) submit(o op, later *callbacks) {
	if later.group != nil {
		later.group.ops = append(later.group.ops, o)
		return
	}
	if b.store != nil {
		b.store.submit(o, later)
		return
	}
	o.write(nil)
	o.publish(later)
	later.finish(o)
}

// waiting is an op of which somebody awaits the end: administration, session state.
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
