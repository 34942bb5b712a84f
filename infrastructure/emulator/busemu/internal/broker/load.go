package broker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// loader rebuilds the broker from its store. A record that does not fit is an error; the
// loader does not guess.
type loader struct {
	c       *catalog
	db      *disk.DB
	topics  map[uint32]*topic
	inlets  map[uint32]*inlet // by the id of inlet.rest
	holders map[uint32]*holder
	last    *message  // loaded last, with its holder
	lastIn  *holder   //
	reading readBack  // for the holder being loaded
	later   callbacks // forwards messages; run after the store has started
}

func load(c *catalog) (resume func(), err error) {
	l := &loader{
		c: c, db: c.store.db, topics: make(map[uint32]*topic), inlets: make(map[uint32]*inlet),
		holders: make(map[uint32]*holder),
	}
	defer func() { l.reading.close() }()
	for _, step := range []struct {
		kind byte
		load func(key, value []byte) error
	}{
		{kindLastID, l.lastID},
		{kindEntity, l.entity},
		{kindSequence, l.sequence},
		{kindPayload, l.payload},
		{kindSession, l.session},
		{kindHistory, l.history},
		{kindMessage, l.message},
	} {
		if err := l.each(step.kind, step.load); err != nil {
			return nil, err
		}
	}
	l.swapOutLast()
	if err := l.each(kindPayload, l.dropOrphan); err != nil {
		return nil, err
	}
	for _, h := range l.holders {
		h.touch() // the time while the broker was down does not count as idle
		h.arm()
		h.forward(&l.later)
	}
	for _, in := range l.inlets {
		in.lastUsed.Store(l.c.now())
		in.armHistory()
	}
	return l.later.run, nil
}

func (l *loader) each(kind byte, load func(key, value []byte) error) error {
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }()
	for it.First(); it.Valid(); it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := load(it.Key(), value); err != nil {
			return fmt.Errorf("record %x: %w", it.Key(), err)
		}
	}
	return it.Error()
}

func (l *loader) lastID(key, value []byte) error {
	if len(key) != 1 || len(value) != 4 {
		return errKey
	}
	l.c.lastID = binary.BigEndian.Uint32(value)
	return nil
}

func (l *loader) entity(key, value []byte) error {
	var r entityRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return err
	}
	c := l.c
	if id, rest, err := splitKey(key); err != nil || len(rest) != 0 || id != r.ID || id == 0 || id > c.lastID {
		return fmt.Errorf("entity %s has an id that was not assigned to it", r.Name)
	}
	switch {
	case r.Partitions < 0 || r.Partitions > MaxPartitions:
		return fmt.Errorf("entity %s has %d partitions", r.Name, r.Partitions)
	case r.Queue != nil:
		q := c.newQueue(r)
		l.inlets[q.inlet.rest.id] = q.inlet
		l.add(q.holders)
	case r.Topic != nil:
		t := c.newTopic(r)
		l.topics[t.id] = t
		l.inlets[t.inlet.rest.id] = t.inlet
		l.holders[t.inlet.rest.id] = t.inlet.rest
	case r.Subscription != nil:
		t := l.topics[r.Of] // ids rise, so the topic was loaded before
		if t == nil {
			return fmt.Errorf("the topic of subscription %s is missing", r.Name)
		}
		s, err := c.newSubscription(t, r)
		if err != nil {
			return err
		}
		l.add(s.holders)
	default:
		return fmt.Errorf("entity %s is neither a queue, a topic nor a subscription", r.Name)
	}
	return nil
}

func (l *loader) add(s holders) {
	l.holders[s.main.id] = s.main
	l.holders[s.deadLetter.id] = s.deadLetter
}

func (l *loader) holder(key []byte) (*holder, []byte, error) {
	id, rest, err := splitKey(key)
	if err != nil {
		return nil, nil, err
	}
	h := l.holders[id]
	if h == nil {
		return nil, nil, fmt.Errorf("it belongs to no entity")
	}
	return h, rest, nil
}

func (l *loader) sequence(key, value []byte) error {
	h, rest, err := l.holder(key)
	if err != nil || len(rest) != 0 || len(value) != 8*len(h.sequences) {
		return fmt.Errorf("%w: sequence numbers", orMalformed(err))
	}
	for p := range h.sequences {
		h.sequences[p].Store(int64(binary.BigEndian.Uint64(value[8*p:])))
	}
	return nil
}

func (l *loader) payload(key, value []byte) error {
	in, sequence, err := l.payloadKey(key)
	if err != nil {
		return err
	}
	in.shares.add(sequence, 1) // counts the record itself; see dropOrphan
	in.size.Add(int64(len(value)))
	return nil
}

func (l *loader) payloadKey(key []byte) (in *ledger, sequence int64, err error) {
	h, rest, err := l.holder(key)
	if err != nil {
		return nil, 0, err
	}
	sequence, suffix, err := splitSequence(rest)
	if err != nil || len(suffix) != 0 {
		return nil, 0, orMalformed(err)
	}
	return h.ledger, sequence, nil
}

func (l *loader) session(key, value []byte) error {
	h, rest, err := l.holder(key)
	if err != nil {
		return err
	}
	if h.sessions == nil || len(value) < 8 {
		return errRecord
	}
	s := h.session(string(rest))
	s.stateAt = int64(binary.BigEndian.Uint64(value))
	s.state = append([]byte{}, value[8:]...)
	return nil
}

func (l *loader) history(key, value []byte) error {
	h, rest, err := l.holder(key)
	if err != nil {
		return err
	}
	at, rest, err := splitSequence(rest)
	if err != nil || len(rest) != 8 || len(value)%len(idHash{}) != 0 {
		return orMalformed(err)
	}
	in := l.inlets[h.id]
	if in == nil || in.history == nil {
		return fmt.Errorf("the entity detects no duplicates")
	}
	if l.c.now()-at >= in.history.window {
		return nil // the next sweep deletes it
	}
	added := 0
	for ; len(value) > 0; value = value[len(idHash{}):] {
		if in.history.add(idHash(value[:len(idHash{})])) { // otherwise the window was shorter at that time
			added++
		}
	}
	in.history.note(at, added)
	return nil
}

func orMalformed(err error) error {
	if err != nil {
		return err
	}
	return errKey
}
