package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/tests/testenv"
)

// rule is the position of an event in the feed: from the id of its transaction, the position of the
// last event of its key, and the highest id of an ended transaction.
type rule func(own, head, ended uint64) uint64

// Transactions take ids, emit, wait for keys, roll back to savepoints, commit and abort in any order,
// the server and relays crash. With the rule of emit, a consumer with an inbox receives all committed
// events of each key in order. The simulation finds the faults of two other rules.
func TestSimulatedTransactionsLoseNoEventAndKeepTheOrderOfKeys(t *testing.T) {
	first := testenv.Seed(t, "FEEDBOX_TEST_SEED", 1)
	last := first + uint64(testenv.Sample(t, 300, 1000)) - 1 //nolint:gosec // positive
	ours := func(own, head, _ uint64) uint64 { return max(own, head) }
	events := 0
	for seed := first; seed <= last; seed++ {
		n, err := simulate(seed, ours)
		if events += n; err != nil {
			t.Fatalf("FEEDBOX_TEST_SEED=%d: %v", seed, err)
		}
	}
	t.Logf("seeds %d to %d, %d events", first, last, events)
	for name, bad := range map[string]rule{
		"the id of the transaction": func(own, _, _ uint64) uint64 { return own },
		"the end of a snapshot":     func(own, _, ended uint64) uint64 { return max(own, ended+1) },
	} {
		seed := first
		err := error(nil)
		for ; err == nil && seed <= last; seed++ {
			_, err = simulate(seed, bad)
		}
		t.Logf("%s, seed %d: %v", name, seed-1, err)
		if err == nil {
			t.Errorf("no fault is found with %s as the position", name)
		}
	}
}

// model is a server with relays and a consumer. Its random choices come from one seed.
type model struct {
	*rand.Rand
	position rule

	next, ended     uint64 // the next id; the highest id that has ended
	logged, flushed uint64 // the highest id in the log; and in its part that is on disk
	running         []*session
	heads           map[string]head
	locks           map[string]*session
	table           []stored // committed

	feed      *Feed
	relay     *relay.Relay
	at, saved map[changefeed.FeedRange]string // positions of the relay, and of its checkpoints
	received  map[string]int64                // the last sequence of each key, in the inbox
	fault     error
}

type head struct {
	sequence int64
	position uint64
}

type stored struct {
	position uint64
	key, raw string
}

// session is a transaction. A unit of work has read the version of an aggregate and stores one
// change of it.
type session struct {
	id        uint64 // 0: none yet
	aggregate string // "": it emits
	read      int64
	changed   bool
	waits     string // the key it waits for
	undo      []func()
	savepoint int // length of undo
	events    []stored
}

func simulate(seed uint64, position rule) (events int, err error) {
	m := &model{
		Rand: rand.New(rand.NewPCG(seed, 1)), position: position, next: 100, ended: 99, heads: map[string]head{}, locks: map[string]*session{},
		at: map[changefeed.FeedRange]string{}, saved: map[changefeed.FeedRange]string{}, received: map[string]int64{},
	}
	m.startRelay()
	for range 500 {
		switch n := m.IntN(100); {
		case n < 10 && len(m.running) < 6:
			m.begin()
		case n < 80 && len(m.running) > 0:
			m.step(m.running[m.IntN(len(m.running))])
		case n < 96:
			m.deliver()
		case n == 96:
			m.startRelay()
		case n > 96:
			m.crash()
		}
	}
	for len(m.running) > 0 {
		m.end(m.running[0], m.running[0].waits == "")
	}
	for range 100 {
		m.deliver()
	}
	for key, h := range m.heads {
		if m.received[key] != h.sequence && m.fault == nil {
			m.fault = fmt.Errorf("key %s: %d of %d events received", key, m.received[key], h.sequence)
		}
	}
	return len(m.table), m.fault
}

func (m *model) begin() {
	s := &session{}
	if m.IntN(3) == 0 {
		s.aggregate = fmt.Sprint("aggregate ", m.IntN(2))
		s.read = m.heads[s.aggregate].sequence
		if l := m.locks[s.aggregate]; l != nil && l.changed { // it reads what was committed
			s.read--
		}
	}
	m.running = append(m.running, s)
}

func (m *model) write(s *session) {
	if s.id == 0 {
		s.id = m.next
		m.next++
	}
	m.logged = max(m.logged, s.id)
}

func (m *model) step(s *session) {
	switch n := m.IntN(10); {
	case s.waits != "":
		m.emit(s, s.waits)
	case s.aggregate != "" && !s.changed:
		m.emit(s, s.aggregate)
	case s.aggregate != "":
		m.end(s, n > 0)
	case n < 2:
		m.write(s) // to a table of the adopter
	case n < 6:
		m.emit(s, fmt.Sprint("key ", m.IntN(4)))
	case n == 6:
		s.savepoint = len(s.undo)
	case n == 7:
		m.rollback(s, min(s.savepoint, len(s.undo)))
	default:
		m.end(s, m.IntN(4) > 0)
	}
}

// emit takes the id of the transaction before it waits for the key, as a server does.
func (m *model) emit(s *session, key string) {
	m.write(s)
	s.waits = key
	for next := m.locks[key]; next != nil && next != s; next = m.locks[next.waits] {
		if m.locks[next.waits] == s {
			m.end(s, false) // a deadlock
			return
		}
		if next.waits == "" {
			return
		}
	}
	if l := m.locks[key]; l != nil && l != s {
		return
	}
	s.waits = ""
	before, mine := m.heads[key], m.locks[key] == s
	if s.aggregate != "" && before.sequence != s.read {
		m.end(s, false)
		return
	}
	now := head{before.sequence + 1, m.position(s.id, before.position, m.ended)}
	if s.aggregate != "" {
		now.position = s.id
	}
	m.heads[key], m.locks[key], s.changed = now, s, true
	events := s.events
	raw := fmt.Sprintf(`{"id":"%s-%d","partitionKey":%q,"type":"domainEvent","data":{"action":"A","sequence":%[2]d}}`, key, now.sequence, key)
	s.events = append(slices.Clip(events), stored{now.position, key, raw})
	s.undo = append(s.undo, func() {
		s.events, m.heads[key] = events, before
		if !mine {
			delete(m.locks, key)
		}
	})
}

func (m *model) rollback(s *session, to int) {
	for len(s.undo) > to {
		s.undo[len(s.undo)-1]()
		s.undo = s.undo[:len(s.undo)-1]
	}
}

// end ends a transaction. A commit with events is on disk, with all that was logged before it. An
// abort may not be, nor a commit of an adopter that has synchronous_commit off.
func (m *model) end(s *session, commit bool) {
	if !commit {
		m.rollback(s, 0)
	}
	m.running = slices.DeleteFunc(m.running, func(other *session) bool { return other == s })
	m.ended = max(m.ended, s.id)
	m.table = append(m.table, s.events...)
	if commit && (len(s.events) > 0 || m.IntN(2) == 0) {
		m.flushed = m.logged
	}
	for key, l := range m.locks {
		if l == s {
			delete(m.locks, key)
		}
	}
}

// crash stops the server. It reuses all ids that its log on disk does not contain.
func (m *model) crash() {
	for len(m.running) > 0 {
		m.end(m.running[0], false)
	}
	m.logged = m.flushed
	m.ended = max(m.flushed, 99)
	m.next = m.ended + 1
}

// startRelay replaces the relay by one that continues from the checkpoints.
func (m *model) startRelay() {
	m.feed, _ = NewFeed(&DB{options: DBOptions{Used: func(error) {}}}, &FeedOptions{Ranges: 2})
	m.feed.look = m.look
	m.relay, _ = relay.New(document.EventDecoder{}, m, nil)
	for r, at := range m.saved {
		m.at[r] = at
	}
}

// deliver passes one page of one range to the relay.
func (m *model) deliver() {
	ranges, _ := m.feed.Ranges(context.Background())
	r := ranges[m.IntN(len(ranges))]
	page, err := m.feed.Read(context.Background(), changefeed.ReadRequest{Range: r, Continuation: m.at[r], MaxItems: 1 + m.IntN(4)})
	if err != nil {
		m.fault = err
		return
	}
	changes := make([]relay.Change, len(page.Items))
	for i, item := range page.Items {
		changes[i] = relay.Change{Raw: item.Raw, LSN: item.LSN}
	}
	if failed := m.relay.Handle(context.Background(), relay.Ownership{Lease: r.String()}, changes); len(failed) > 0 {
		m.fault = cmp.Or(m.fault, failed[0].Err)
	}
	m.at[r] = page.Continuation
	if m.IntN(8) == 0 { // a checkpoint is a commit on the same server
		m.saved[r] = page.Continuation
		s := &session{}
		m.write(s)
		m.end(s, true)
		m.flushed = m.logged
	}
}

// Publish implements relay.Publisher as a consumer with an inbox.
func (m *model) Publish(_ context.Context, groups []relay.Group) error {
	for _, g := range groups {
		for _, message := range g.Messages {
			last := m.received[message.Key]
			if message.Sequence > last+1 {
				m.fault = cmp.Or(m.fault, errors.New(message.ID+" follows event "+fmt.Sprint(last)))
			}
			m.received[message.Key] = max(last, message.Sequence)
		}
	}
	return nil
}

// look is poll for one reader, with readQuery on the model.
func (m *model) look(_ context.Context, readers ...reader) (*found, error) {
	r, seen, horizon := readers[0], &found{ahead: m.ended + 1}, m.ended+1
	for _, s := range m.running {
		if s.id > 0 {
			horizon = min(horizon, s.id)
		}
	}
	after := r.hash
	if r.empty != r.Position {
		after = wholeTransaction
	}
	var rows []stored
	for _, i := range rand.New(rand.NewPCG(uint64(len(m.table)), 1)).Perm(len(m.table)) { // a read may look twice
		e := m.table[i]
		if e.position >= horizon {
			continue
		}
		seen.last = max(seen.last, e.position)
		if hash := recordstore.Hash(e.key); hash >= r.Low && hash < r.High && (e.position > r.empty || e.position == r.empty && hash > after) {
			rows = append(rows, e)
		}
	}
	order := func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(recordstore.Hash(a.key), recordstore.Hash(b.key)))
	}
	slices.SortStableFunc(rows, order)
	for i, e := range rows {
		if len(seen.events) >= r.MaxItems && order(rows[i-1], e) != 0 {
			seen.cut, seen.within = true, rows[i-1].position == e.position
			break
		}
		key, _ := json.Marshal(e.key)
		seen.events = append(seen.events, event{recordstore.Hash(e.key), changefeed.Item{Raw: []byte(e.raw), Key: key, LSN: int64(e.position)}}) //nolint:gosec // small
	}
	if len(seen.events) > r.MaxItems {
		seen.cut, seen.within = true, true
	}
	return seen, nil
}
