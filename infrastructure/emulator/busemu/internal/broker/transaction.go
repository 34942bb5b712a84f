package broker

import (
	"cmp"
	"slices"
)

// Work is a part of a transaction: messages to send, or one message to settle.
type Work struct {
	Path  string // entity to send to, or entity of the message
	Batch []Message
	// Token and Outcome settle a message, if Batch is nil.
	Token   LockToken
	Outcome Outcome
}

// Commit does all of the work or none: in one record of the store, or in memory under all the
// locks it takes. done is called when the work is durable, or with the error of a part.
//
// Source: AMQP 1.0 part 4.
func (b *Broker) Commit(work []Work, done func(error)) {
	c := &commit{b: b, done: done}
	if err := c.find(work); err != nil {
		done(err)
		return
	}
	var later callbacks
	c.lockInlets()
	c.lockHolders()
	err := c.check()
	if err == nil {
		c.do(&later)
	}
	if b.store != nil && err == nil {
		b.submit(&c.group, &later) // before another request can change the messages
	}
	for _, h := range c.holders {
		h.mu.Unlock()
	}
	if b.store == nil && err == nil {
		b.submit(&c.group, &later) // after the holders' locks, because publish takes them
	}
	for _, in := range c.inlets {
		in.mu.Unlock()
	}
	later.run()
	if err != nil {
		done(err)
	}
}

// CheckLock returns the partition of a locked message, or MessageLockLost.
func (r *Receiver) CheckLock(token LockToken) (Partition, error) {
	h := r.holder
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.find(token)
	if m == nil {
		return Partition{}, lockLost()
	}
	return h.inlet.partitionOfMessage(m), nil
}

// CheckSend returns the partition for a batch, or the reason to refuse it.
func (s *Sender) CheckSend(batch []Message) (Partition, error) {
	s.inlet.mu.Lock()
	defer s.inlet.mu.Unlock()
	if s.gone != nil {
		return Partition{}, s.gone
	}
	if err := s.inlet.check(batch); err != nil {
		return Partition{}, err
	}
	return s.inlet.partitionOfBatch(batch), nil
}

// commit is a transaction being committed.
type commit struct {
	b       *Broker
	done    func(error)
	group   opGroup
	sends   []send
	settles []settlement
	inlets  []*inlet  // each once, in locking order
	holders []*holder // likewise
}

type send struct {
	inlet  *inlet
	batch  []Message
	intake *intake
}

type settlement struct {
	holder  *holder
	token   LockToken
	outcome Outcome
}

func (c *commit) find(work []Work) error {
	for _, w := range work {
		if w.Batch == nil {
			h, err := c.b.holderAt(w.Path)
			if err != nil {
				return err
			}
			c.settles = append(c.settles, settlement{h, w.Token, w.Outcome})
			c.holders = append(c.holders, h)
			continue
		}
		in, err := c.b.inletAt(w.Path)
		if err != nil {
			return err
		}
		o := &intake{inlet: in}
		o.hash(w.Batch)
		c.sends = append(c.sends, send{in, w.Batch, o})
		c.inlets = append(c.inlets, in)
	}
	return nil
}

func (c *commit) lockInlets() {
	slices.SortFunc(c.inlets, func(x, y *inlet) int { return cmp.Compare(x.rest.id, y.rest.id) })
	c.inlets = slices.Compact(c.inlets)
	for _, in := range c.inlets {
		in.mu.Lock()
	}
}

// lockHolders locks a holder before its dead-letter holder, which has the higher id.
func (c *commit) lockHolders() {
	slices.SortFunc(c.holders, func(x, y *holder) int { return cmp.Compare(x.id, y.id) })
	c.holders = slices.Compact(c.holders)
	for _, h := range c.holders {
		h.mu.Lock()
	}
}

// check finds errors before anything is changed.
func (c *commit) check() error {
	seen := make(map[*message]bool, len(c.settles))
	for _, s := range c.settles {
		if s.holder.gone {
			return s.holder.notFound()
		}
		m := s.holder.find(s.token)
		if m == nil || seen[m] {
			return lockLost()
		}
		seen[m] = true
		if err := s.holder.maySettle(s.outcome); err != nil {
			return err
		}
	}
	for _, s := range c.sends {
		if err := s.inlet.check(s.batch); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) do(later *callbacks) {
	c.group.done = c.done
	later.group = &c.group
	now := c.b.now()
	for _, s := range c.settles {
		s.holder.settleLocked(s.holder.find(s.token), s.outcome, nil, now, later)
	}
	for _, s := range c.sends {
		s.inlet.sendLocked(s.batch, s.intake, later)
	}
	later.group = nil
}
