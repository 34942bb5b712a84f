package relayservice_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/domain/fault"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/document"
	"feedbox/tests/spec/steps"
	"feedbox/tests/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestSimulation runs two relays over a store and a broker in memory, with random faults and requests
// of an operator. In the end every event was sent, and those of a key in order. The steps are recorded
// for the comparison with Relay.tla (tests/spec).
func TestSimulation(t *testing.T) {
	first := testenv.Seed(t, "RELAY_SEED", 1)
	seeds := testenv.Count(t, "RELAY_SEEDS", testenv.Sample(t, 4, 10))
	for seed := first; seed < first+uint64(seeds); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newFleet(t, seed)
				s.run()
				if err := s.log.Write(fmt.Sprint("relay-", seed)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// simKeys are the keys of the simulated events.
var simKeys = []string{"a", "b", "c", "d"}

// fleet is the simulated system.
type fleet struct {
	*testing.T
	rnd    *rand.Rand
	log    *steps.Relays
	feed   *memfeed.Container
	leases *memstore.Store
	lot    memoryLot
	hosts  []*simHost
	made   int
	cuts   bool   // the container may lose changes
	only   string // if set, the key of all new events
	until  time.Time

	mu      sync.Mutex // guards the fields below
	rolls   *rand.Rand
	weather map[string]float64 // probability of each kind of fault in a call
	busy    string             // a key that the broker does not accept
	mended  bool               // the broker accepts everything
	events  []simEvent         // of the container, in order
	written int                // events so far
	got     []string           // ids in the order of their arrival
}

type simEvent struct {
	id, key string
	lsn     int64
}

// simHost is one incarnation of a relay.
type simHost struct {
	*fleet
	name   string
	cancel context.CancelFunc
	ended  chan error

	state  sync.Mutex // guards the fields below
	dead   bool
	frozen time.Time // end of the freeze
}

var errSimulated = errors.New("simulated")

func newFleet(t *testing.T, seed uint64) *fleet {
	s := &fleet{
		T: t, rnd: rand.New(rand.NewPCG(seed, 1)), rolls: rand.New(rand.NewPCG(seed, 2)), log: steps.NewRelays(),
		feed: memfeed.New(nil), leases: memstore.New(nil), lot: memoryLot{parkedtest.NewMemory()},
		weather: map[string]float64{}, cuts: seed%3 == 0,
	}
	return s
}

// roll reports whether a fault of a kind strikes a call, after a random delay.
func (s *fleet) roll(kind string, longest time.Duration) (strikes bool, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rolls.Float64() < s.weather[kind], time.Duration(s.rolls.Int64N(int64(longest)))
}

// Before implements steps.RelayFaults.
func (h *simHost) Before(ctx context.Context, op string) error {
	strikes, delay := h.roll(op+" fails", 20*time.Millisecond)
	time.Sleep(delay)
	for {
		h.state.Lock()
		dead, frozen := h.dead, time.Until(h.frozen)
		h.state.Unlock()
		switch {
		case dead:
			return errSimulated
		case frozen > 0:
			time.Sleep(frozen)
			continue
		case ctx.Err() != nil: // of a store: the caller has given up
			return context.Cause(ctx)
		case strikes:
			return errSimulated
		}
		return nil
	}
}

// After implements steps.RelayFaults.
func (h *simHost) After(_ context.Context, op string) error {
	strikes, delay := h.roll(op+" unanswered", 20*time.Millisecond)
	time.Sleep(delay)
	h.state.Lock()
	defer h.state.Unlock()
	if strikes || h.dead {
		return errSimulated
	}
	return nil
}

// accept is the broker: it drops duplicates, and refuses poison until that is mended.
func (s *fleet) accept(key string, ids []string) (arrived, accepted int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	outage := func() error { return &relay.Error{Class: relay.Outage, Reason: "simulated", Err: errSimulated} }
	if s.rolls.Float64() < s.weather["broker down"] || key == s.busy {
		return 0, 0, outage()
	}
	for _, id := range ids {
		if strings.HasPrefix(id, "poison") && !s.mended {
			return arrived, arrived, relay.Refuse("simulated", "event %s", id)
		}
		if arrived++; !slices.Contains(s.got, id) {
			s.got = append(s.got, id)
		}
		if s.rolls.Float64() < s.weather["send breaks"] { // the first ones arrive, and the link breaks
			return arrived, s.rolls.IntN(arrived + 1), outage()
		}
	}
	return arrived, arrived, nil
}

// join starts a host.
func (s *fleet) join() {
	s.made++
	h := &simHost{fleet: s, name: fmt.Sprint("h", s.made), ended: make(chan error, 1)}
	ports := s.log.Host(h.name, h)
	service, err := relayservice.New(relayport.Store{
		Name: "memory", Feed: ports.Feed(s.feed, placed{s.feed}), Decoder: document.EventDecoder{}, Events: noEvents{nil},
		Leases: ports.Leases(s.leases), Parked: ports.Parked(s.lot), Verify: func(context.Context) error { return nil },
	}, relayport.Broker{
		Name: "broker", System: "memory", Destination: "here",
		Open: func(*slog.Logger, func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
			return ports.Publisher(s.accept), nil
		},
	}, &relayservice.Options{
		Instance: h.name, Expiry: 8 * time.Second, WaitLimit: 15 * time.Second, ParkedPoll: 2 * time.Second, MaxItems: 4, DrainTimeout: 3 * time.Second,
		PollMin: 200 * time.Millisecond, PollBusy: 50 * time.Millisecond, PollMax: 2 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	h.cancel = cancel
	go func() { h.ended <- service.Run(ctx) }()
	s.hosts = append(s.hosts, h)
}

// leave ends a host: in order, or by a crash, after which its calls have no effect.
func (s *fleet) leave(h *simHost, crash bool) {
	if crash {
		h.state.Lock()
		h.dead = true
		h.state.Unlock()
	}
	h.cancel()
	if err := <-h.ended; err != nil && !crash {
		s.Logf("%s ended with %v", h.name, err)
	}
	s.hosts = slices.DeleteFunc(s.hosts, func(o *simHost) bool { return o == h })
}

// commit stores a transaction of one to three events of a key.
func (s *fleet) commit(key string) {
	s.log.Do(func() steps.RelayStep {
		var docs []memfeed.Document
		var ids []string
		for n := range 1 + s.rnd.IntN(3) {
			s.written++
			id := fmt.Sprintf("%c%04d", 'a'+s.rnd.IntN(26), s.written) // ids have another order than ordinals
			if s.rnd.IntN(25) == 0 {
				id = "poison" + id
			}
			ids = append(ids, id)
			docs = append(docs, memfeed.Document{
				Key: key, ID: id, Data: map[string]any{"action": "E", "ordinal": n + 1}, More: map[string]any{"partitionKey": key, "type": "domainEvent"},
			})
		}
		s.rnd.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] }) // the feed has no order within a transaction
		lsn := s.feed.Put(docs...)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, id := range ids {
			s.events = append(s.events, simEvent{id, key, lsn})
		}
		return steps.RelayStep{Do: "commit", Key: key, IDs: ids, EPK: memfeed.EPK(key), LSN: lsn}
	})
}

// act makes one random fault or request.
func (s *fleet) act() {
	storm := func(kind string, p float64, length time.Duration) func() {
		return func() { s.set(kind, p); time.AfterFunc(length, func() { s.set(kind, 0) }) }
	}
	length := 5*time.Second + time.Duration(s.rnd.Int64N(int64(20*time.Second)))
	host := s.hosts[s.rnd.IntN(len(s.hosts))]
	acts := []func(){
		storm("broker down", 1, length), storm("broker down", 0.3, length), storm("send breaks", 0.3, length), storm("send unanswered", 0.5, length),
		storm("park fails", 0.5, length), storm("park unanswered", 0.5, length), storm("remove unanswered", 0.5, length), storm("remove fails", 0.5, length),
		storm("listed fails", 0.5, length), storm("read fails", 0.5, length), storm("replace unanswered", 0.3, length), storm("replace fails", 0.3, length),
		storm("first fails", 0.5, length), storm("open unanswered", 0.5, length), storm("update fails", 0.5, length),
		func() { s.busyKey(simKeys[s.rnd.IntN(len(simKeys))], 3*length) },
		func() {
			s.busyKey(simKeys[s.rnd.IntN(len(simKeys))], 20*time.Second)
			storm("park unanswered", 0.9, 40*time.Second)()
		},
		func() {
			s.busyKey(simKeys[s.rnd.IntN(len(simKeys))], 20*time.Second)
			storm("park unanswered", 0.9, 40*time.Second)()
		},
		func() { s.busyKey(simKeys[s.rnd.IntN(len(simKeys))], 3*length) },
		func() { // no other key shows whether the broker works
			s.only, s.until = simKeys[s.rnd.IntN(len(simKeys))], time.Now().Add(40*time.Second)
			s.busyKey(s.only, 30*time.Second)
		},
		func() { s.leave(host, true); s.join() }, func() { s.leave(host, true); s.join() }, func() { s.leave(host, false); s.join() },
		func() { host.freeze(length) }, func() { host.freeze(length) },
		func() { s.feed.Split(memfeed.EPK(simKeys[s.rnd.IntN(len(simKeys))])) },
		func() { s.operate(func(ctx context.Context, o *changefeed.Operator) error { return o.Release(ctx) }) },
		func() { s.operate(func(ctx context.Context, o *changefeed.Operator) error { return o.Retry(ctx) }) },
		func() {
			s.operate(func(ctx context.Context, o *changefeed.Operator) error {
				return o.Rewind(ctx, changefeed.FromBeginning())
			})
		},
		func() { s.operate(func(ctx context.Context, o *changefeed.Operator) error { return o.Restart(ctx) }) },
		func() {
			s.operate(func(ctx context.Context, o *changefeed.Operator) error { return o.Pause(ctx) })
			time.Sleep(length / 2)
			s.operate(func(ctx context.Context, o *changefeed.Operator) error { return o.Resume(ctx) })
		},
		s.dropLease, func() { s.decide(s.rnd.IntN(3) == 0) }, func() { s.decide(false) },
		s.cut,
	}
	acts[s.rnd.IntN(len(acts))]()
}

func (s *fleet) set(kind string, p float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.weather[kind] = p
}

func (s *fleet) busyKey(key string, length time.Duration) {
	set := func(key string) { s.mu.Lock(); defer s.mu.Unlock(); s.busy = key }
	set(key)
	time.AfterFunc(length, func() { set("") })
}

func (h *simHost) freeze(length time.Duration) {
	h.state.Lock()
	defer h.state.Unlock()
	h.frozen = time.Now().Add(length)
}

// calm is an operator's connection without faults.
type calm struct{}

// Before implements steps.RelayFaults.
func (calm) Before(context.Context, string) error { return nil }

// After implements steps.RelayFaults.
func (calm) After(context.Context, string) error { return nil }

func (s *fleet) operate(act func(ctx context.Context, o *changefeed.Operator) error) {
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	o := changefeed.NewOperator(s.feed, s.log.Host("operator", calm{}).Leases(s.leases), &changefeed.OperatorOptions{Processor: "feedbox"})
	if err := act(ctx, o); err != nil {
		s.Logf("operator: %v", err)
	}
}

// decide mends the broker for a while and requests a retry of all parked keys, or a skip of their
// first events.
func (s *fleet) decide(skip bool) {
	lot := s.log.Host("operator", calm{}).Parked(s.lot)
	gates, err := s.lot.Gates(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, g := range gates {
		intent := relay.Intent{Verb: relay.VerbRetry, At: time.Now()}
		if skip {
			first, err := s.lot.First(s.Context(), g.Key, 1, 1)
			if err != nil || len(first) == 0 {
				continue
			}
			intent.Verb, intent.Event = relay.VerbSkip, first[0].ID
		}
		if _, err := lot.SetIntent(s.Context(), g.Key, intent); err != nil && !fault.Is(err, fault.NotFound) {
			s.Fatal(err)
		}
	}
}

// dropLease deletes a lease record. A host fills the gap from its memory.
func (s *fleet) dropLease() {
	records, err := s.leases.List(s.Context(), "")
	if err != nil {
		s.Fatal(err)
	}
	records = slices.DeleteFunc(records, func(r changefeed.Record) bool { return !strings.Contains(r.ID, "..") })
	if len(records) > 0 {
		r := records[s.rnd.IntN(len(records))]
		_ = s.log.Host("operator", calm{}).Leases(s.leases).Delete(s.Context(), r.ID, r.ETag) // changed meanwhile: it stays
	}
}

// cut makes the container lose its last changes. It grows again only after a restart, which a relay
// that has read further waits for.
func (s *fleet) cut() {
	if !s.cuts {
		return
	}
	kind, lsn := "restore", int64(0)
	if s.rnd.IntN(2) == 0 {
		kind = "failover"
	}
	s.log.Do(func() steps.RelayStep {
		page, err := s.feed.Read(s.Context(), changefeed.ReadRequest{Range: changefeed.FullRange()})
		var split *changefeed.SplitError
		if errors.As(err, &split) {
			page, err = s.feed.Read(s.Context(), changefeed.ReadRequest{Range: split.Children[0]})
		}
		if err != nil {
			s.Fatal(err)
		}
		lsn = max(1, page.EndLSN-1-s.rnd.Int64N(4))
		if kind == "restore" {
			s.feed.Restore(lsn)
		} else {
			s.feed.FailOver(lsn)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = slices.DeleteFunc(s.events, func(e simEvent) bool { return e.lsn > lsn })
		return steps.RelayStep{Do: "cut", Kind: kind, LSN: lsn}
	})
	time.Sleep(20 * time.Second)
	s.operate(func(ctx context.Context, o *changefeed.Operator) error { return o.Restart(ctx) })
	time.Sleep(5 * time.Second)
}

// run lets events and faults happen for some minutes, then heals everything.
func (s *fleet) run() {
	const length = 3 * time.Minute
	s.join()
	s.join()
	end, next := time.Now().Add(length), time.Now().Add(10*time.Second)
	for time.Now().Before(end) {
		time.Sleep(time.Duration(s.rnd.ExpFloat64() * float64(1500*time.Millisecond)))
		key := simKeys[s.rnd.IntN(len(simKeys))]
		if time.Now().Before(s.until) {
			key = s.only
		}
		s.commit(key)
		if time.Now().After(next) {
			synctest.Wait()
			s.act()
			next = time.Now().Add(time.Duration(s.rnd.ExpFloat64() * float64(6*time.Second)))
		}
	}
	s.settle()
	for len(s.hosts) > 0 {
		s.leave(s.hosts[0], false)
	}
}

// settle ends all faults, mends the broker and waits until every event was sent.
func (s *fleet) settle() {
	s.mu.Lock()
	clear(s.weather)
	s.busy, s.mended = "", true
	s.mu.Unlock()
	for limit := time.Now().Add(10 * time.Minute); ; {
		s.decide(false)
		time.Sleep(10 * time.Second)
		if missing := s.missing(); missing == "" {
			break
		} else if time.Now().After(limit) {
			s.Error(missing)
			break
		}
	}
}

// missing returns the first event of the container that was not sent before the later ones of its
// key; "" if there is none. Skipped events may be missing or late.
func (s *fleet) missing() string {
	skipped := map[string]bool{}
	for _, key := range simKeys {
		all, err := s.lot.Skipped(s.Context(), key)
		if err != nil {
			s.Fatal(err)
		}
		for i := range all {
			skipped[all[i].Event.ID] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := map[string]int{}
	for _, e := range s.events {
		switch at := slices.Index(s.got, e.id); {
		case skipped[e.id]:
		case at < 0:
			return fmt.Sprintf("event %s of key %s was not sent", e.id, e.key)
		case at < last[e.key]:
			return fmt.Sprintf("event %s of key %s was sent after a later one", e.id, e.key)
		default:
			last[e.key] = at
		}
	}
	return ""
}
