package broker

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"feedbox/tests/testenv"
)

// The model is a queue as documented, in a few naive lists. The test applies random operations
// to the queue and to the model, and compares the results of clients and Peek after each.
// rapid prints the seed of a failure (-rapid.seed repeats it).

const (
	modelLock     = 10 * time.Second
	modelWindow   = 20 * time.Second
	modelDelivery = 3
)

type modelMessage struct {
	seq       int64
	text      string
	session   string
	key       string // of its partition
	place     place
	deferred  bool
	attempts  int
	ttl       time.Duration
	expires   time.Time
	scheduled time.Time
	until     time.Time // of the lock, without sessions
	held      Delivery  // the client's delivery, if locked
}

func (m *modelMessage) String() string {
	return fmt.Sprintf("#%d %s %s attempts=%d expires %s", m.seq, m.text, m.place, m.attempts, m.expires.Format(time.TimeOnly))
}

type modelClient struct {
	*client
	credit int
	until  time.Time // of the session's lock
}

type model struct {
	rig
	rt         *rapid.T
	sessions   bool
	spread     bool // over partitions: then a batch is of one session or partition key
	deadExpire bool
	messages   []*modelMessage // by seq
	dead       []string
	firstSeen  map[string]time.Time
	clients    map[string]*modelClient // by session; "" without sessions
	lastSeq    map[int]int64           // by partition
	sent       int
}

// TestMain lets rapid check 100 runs of each kind at full size, and a sample otherwise. -rapid.checks overrides it.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := os.Getenv("FEEDBOX_TEST_FULL") == "yes"
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen {
		_ = flag.Set("rapid.checks", "30") // a number that it takes
	}
	testenv.Main(m)
}

func TestModel(t *testing.T) {
	for _, kind := range []string{"memory", "durable", "swapping"} {
		for _, messages := range []string{"plain", "sessions", "partitions", "partitioned sessions"} {
			t.Run(kind+","+messages, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					// In a bubble t.Deadline panics; a plain TB has none.
					rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) { runModel(t, rt, kind, messages) })
				})
			})
		}
	}
}

func runModel(t *testing.T, rt *rapid.T, kind, messages string) {
	sessions, spread := strings.HasSuffix(messages, "sessions"), strings.HasPrefix(messages, "part")
	durable := kind != "memory"
	m := &model{
		rig: rig{t: t, cache: map[string]int64{"swapping": 1}[kind], partitions: 2}, rt: rt, sessions: sessions, spread: spread, deadExpire: rapid.Bool().Draw(rt, "dead-letter expired"),
		firstSeen: make(map[string]time.Time), lastSeq: make(map[int]int64), clients: make(map[string]*modelClient),
	}
	if durable {
		m.fs = vfs.NewCrashableMem()
	}
	m.open(m.fs)
	defer func() { m.Close() }()
	m.queue("q", Queue{
		LockDuration: modelLock, MaxDeliveryCount: modelDelivery, RequiresSession: sessions, RequiresDuplicateDetection: true,
		DuplicateDetectionWindow: modelWindow, DeadLetteringOnExpiration: m.deadExpire, Partitioned: spread,
	})
	actions := map[string]func(*rapid.T){
		"": m.compare, "send": m.doSend, "settle": m.doSettle, "settle2": m.doSettle, "credit": m.doCredit, "close": m.doClose,
		"sleep": m.doSleep, "deferred": m.doDeferred, "cancel": m.doCancel, "open": m.doOpen, "renew": m.doRenew,
	}
	if durable {
		actions["crash"] = m.doCrash
	}
	rt.Repeat(actions)
}

func (m *model) session(rt *rapid.T) string {
	if !m.sessions {
		return ""
	}
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "session")
}

func (m *model) doSend(rt *rapid.T) {
	var batch []Message
	of, key := m.session(rt), ""
	if m.spread && !m.sessions {
		key = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
	}
	for range rapid.IntRange(1, 4).Draw(rt, "n") {
		m.sent++
		x := Message{
			Payload: []byte(fmt.Sprint(m.sent)), MessageID: rapid.StringMatching(`[a-f]?[a-f]`).Draw(rt, "id"),
			SessionID: of, HasSession: m.sessions, PartitionKey: key,
			TTL: rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second, 25 * time.Second}).Draw(rt, "ttl"),
		}
		if after := rapid.SampledFrom([]time.Duration{0, 0, 3 * time.Second, 15 * time.Second}).Draw(rt, "after"); after > 0 {
			x.ScheduledAt = m.Now().Add(after)
		}
		batch = append(batch, x)
		if !m.spread {
			of = m.session(rt)
		}
	}
	m.send("q", batch...)
	for _, x := range batch {
		id := x.MessageID
		if m.spread {
			id += " " + x.SessionID + key
		}
		if first, seen := m.firstSeen[id]; seen && m.Now().Sub(first) < modelWindow {
			continue
		}
		m.firstSeen[id] = m.Now()
		y := &modelMessage{seq: m.next(x.SessionID + key), text: string(x.Payload), session: x.SessionID, key: x.SessionID + key, place: inReady, ttl: x.TTL, scheduled: x.ScheduledAt}
		if !x.ScheduledAt.IsZero() {
			y.place = inScheduled
		} else if x.TTL > 0 {
			y.expires = m.Now().Add(x.TTL)
		}
		m.messages = append(m.messages, y)
	}
}

// next returns the sequence number of the next message.
func (m *model) next(key string) int64 {
	partition := 0
	if m.spread {
		in, err := m.inletAt("q")
		if err != nil {
			m.rt.Fatal(err)
		}
		partition = in.partitionOfKey(key)
	}
	m.lastSeq[partition]++
	return int64(partition)<<48 | m.lastSeq[partition]
}

func (m *model) doOpen(rt *rapid.T) {
	id := m.session(rt)
	switch c := m.clients[id]; {
	case m.sessions && rapid.Bool().Draw(rt, "next"):
		x, err := m.tryAccept("q", nil, time.Nanosecond)
		if err != nil {
			for id := range m.sessionsReady() {
				rt.Fatalf("accept next: %v, but %s is available", err, id)
			}
			m.sweep() // a nanosecond has passed
			return
		}
		id, _ = x.Session()
		if !m.sessionsReady()[id] {
			rt.Fatalf("accept next gave %s", id)
		}
		m.clients[id] = &modelClient{client: x, until: m.Now().Add(modelLock)}
	case c != nil:
		return
	case m.sessions:
		m.clients[id] = &modelClient{client: m.accept("q", id, 0), until: m.Now().Add(modelLock)}
	default:
		m.clients[id] = &modelClient{client: m.receive("q", 0)}
	}
}

// sessionsReady returns the sessions with ready messages and without a client.
func (m *model) sessionsReady() map[string]bool {
	ready := make(map[string]bool)
	for _, x := range m.messages {
		if x.place == inReady && m.clients[x.session] == nil {
			ready[x.session] = true
		}
	}
	return ready
}

func (m *model) doCredit(rt *rapid.T) {
	if c := m.clients[m.session(rt)]; c != nil {
		n := rapid.IntRange(1, 5).Draw(rt, "credit")
		c.AddCredit(uint32(n))
		c.credit += n
	}
}

func (m *model) pick(rt *rapid.T, where place) *modelMessage {
	var found []*modelMessage
	for _, x := range m.messages {
		if x.place == where {
			found = append(found, x)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return rapid.SampledFrom(found).Draw(rt, "message")
}

func (m *model) doSettle(rt *rapid.T) {
	x := m.pick(rt, inLocked)
	if x == nil {
		return
	}
	kind := rapid.SampledFrom([]OutcomeKind{Complete, Abandon, Release, Defer, DeadLetter}).Draw(rt, "outcome")
	done := make(chan error, 1)
	m.Settle("q", x.held.LockToken, Outcome{Kind: kind}, func(err error) { done <- err })
	if err := <-done; err != nil {
		rt.Fatalf("settle %v: %v", x, err)
	}
	switch kind {
	case Complete:
		m.remove(x)
	case Abandon:
		m.giveBack(x, true)
	case Release:
		m.giveBack(x, false)
	case Defer:
		x.deferred = true
		m.giveBack(x, false)
	case DeadLetter:
		m.deadLetter(x)
	}
}

func (m *model) doDeferred(rt *rapid.T) {
	x := m.pick(rt, inDeferred)
	if x == nil || m.sessions && m.clients[x.session] == nil {
		return
	}
	o := SequenceOptions{Sequences: []int64{x.seq}}
	if m.sessions {
		o.Session = &x.session
	}
	done := make(chan error, 1)
	m.ReceiveBySequence("q", o, func(ds []Delivery, err error) {
		if err == nil {
			x.held = ds[0]
		}
		done <- err
	})
	if err := <-done; err != nil {
		rt.Fatalf("receive %v: %v", x, err)
	}
	x.place, x.until = inLocked, m.Now().Add(modelLock)
}

func (m *model) doCancel(rt *rapid.T) {
	if x := m.pick(rt, inScheduled); x != nil {
		done := make(chan error, 1)
		m.CancelScheduled("q", []int64{x.seq}, func(err error) { done <- err })
		if err := <-done; err != nil {
			rt.Fatalf("cancel %v: %v", x, err)
		}
		m.remove(x)
	}
}

func (m *model) doRenew(rt *rapid.T) {
	if x := m.pick(rt, inLocked); x != nil {
		if m.sessions {
			if _, err := m.RenewSessionLock("q", x.session, nil); err != nil {
				rt.Fatal(err)
			}
			m.clients[x.session].until = m.Now().Add(modelLock)
			return
		}
		if _, err := m.RenewLocks("q", []LockToken{x.held.LockToken}); err != nil {
			rt.Fatal(err)
		}
		x.until = m.Now().Add(modelLock)
	}
}

func (m *model) doClose(rt *rapid.T) {
	id := m.session(rt)
	c := m.clients[id]
	if c == nil {
		return
	}
	c.Close()
	delete(m.clients, id)
	m.releaseSession(id, false)
}

func (m *model) releaseSession(id string, failed bool) {
	if !m.sessions {
		return // locks outlive the receiver
	}
	for _, x := range slices.Clone(m.messages) {
		if x.session == id && x.place == inLocked {
			m.giveBack(x, failed)
		}
	}
}

func (m *model) doCrash(*rapid.T) {
	m.crash()
	m.clients = make(map[string]*modelClient)
	for _, x := range slices.Clone(m.messages) {
		if x.place == inLocked {
			m.giveBack(x, false)
		}
	}
}

func (m *model) doSleep(rt *rapid.T) {
	end := m.Now().Add(time.Duration(rapid.IntRange(1, 12).Draw(rt, "seconds")) * time.Second)
	for {
		next := end
		for _, at := range m.events() {
			if at.After(m.Now()) && at.Before(next) {
				next = at
			}
		}
		time.Sleep(next.Sub(m.Now()))
		synctest.Wait()
		m.sweep()
		if next.Equal(end) {
			return
		}
	}
}

func (m *model) events() (at []time.Time) {
	for _, x := range m.messages {
		at = append(at, x.expires, x.scheduled, x.until)
	}
	for _, c := range m.clients {
		at = append(at, c.until)
	}
	return at
}

func (m *model) due(at time.Time) bool { return !at.IsZero() && !at.After(m.Now()) }

// sweep applies expired locks and times to live.
func (m *model) sweep() {
	for _, x := range slices.Clone(m.messages) {
		if !m.sessions && x.place == inLocked && m.due(x.until) {
			m.giveBack(x, true)
		}
	}
	for id, c := range m.clients {
		if m.due(c.until) {
			if c.lost() == nil {
				m.rt.Fatalf("session %s was not lost", id)
			}
			delete(m.clients, id)
			m.releaseSession(id, true)
		}
	}
	for _, x := range slices.Clone(m.messages) {
		if (x.place == inReady || x.place == inDeferred) && m.due(x.expires) {
			m.expire(x)
		}
	}
	var now []*modelMessage
	for _, x := range m.messages {
		if x.place == inScheduled && m.due(x.scheduled) {
			now = append(now, x)
		}
	}
	slices.SortStableFunc(now, func(a, b *modelMessage) int { return a.scheduled.Compare(b.scheduled) })
	for _, x := range now {
		m.remove(x)
		y := &modelMessage{seq: m.next(x.key), text: x.text, session: x.session, key: x.key, place: inReady, ttl: x.ttl}
		if x.ttl > 0 {
			y.expires = m.Now().Add(x.ttl)
		}
		m.messages = append(m.messages, y)
	}
	m.deliver()
}

func (m *model) remove(x *modelMessage) {
	x.place = nowhere
	m.messages = slices.DeleteFunc(m.messages, func(y *modelMessage) bool { return x == y })
}

func (m *model) deadLetter(x *modelMessage) {
	m.remove(x)
	m.dead = append(m.dead, fmt.Sprint(x.text, " ", x.attempts))
}

func (m *model) expire(x *modelMessage) {
	if m.deadExpire {
		m.deadLetter(x)
		return
	}
	m.remove(x)
}

func (m *model) giveBack(x *modelMessage, failed bool) {
	x.place, x.until = inReady, time.Time{}
	if x.deferred {
		x.place = inDeferred
	}
	if failed {
		x.attempts++
	}
	switch {
	case failed && x.attempts == modelDelivery:
		m.deadLetter(x)
	case m.due(x.expires):
		m.expire(x)
	}
}

// deliver locks ready messages for clients with credit, in order, and checks that each client
// got exactly these.
func (m *model) deliver() {
	synctest.Wait()
	if m.spread && !m.sessions {
		m.deliverInTurn()
		return
	}
	given := make(map[string][]Delivery)
	for id, c := range m.clients {
		given[id] = c.taken()
	}
	for _, x := range m.messages {
		c := m.clients[x.session]
		if !m.sessions {
			c = m.clients[""]
		}
		if x.place != inReady || c == nil || c.credit == 0 {
			continue
		}
		id := x.session
		if len(given[id]) == 0 {
			m.rt.Fatalf("%v was not delivered\n%s", x, m.Dump())
		}
		m.give(x, given[id][0], c)
		given[id] = given[id][1:]
	}
	for id, rest := range given {
		if len(rest) > 0 {
			m.rt.Fatalf("%q of session %q should not have been delivered\n%s", payloads(rest), id, m.Dump())
		}
	}
}

// deliverInTurn is deliver for partitions: a delivered message must be the first of its
// partition.
func (m *model) deliverInTurn() {
	c := m.clients[""]
	if c == nil {
		return
	}
	slices.SortFunc(m.messages, func(a, b *modelMessage) int { return cmp.Compare(a.seq, b.seq) })
	next := func(which func(*modelMessage) bool) *modelMessage {
		i := slices.IndexFunc(m.messages, func(x *modelMessage) bool { return x.place == inReady && which(x) })
		if i < 0 {
			return nil
		}
		return m.messages[i]
	}
	for _, d := range c.taken() {
		x := next(func(x *modelMessage) bool { return x.seq>>48 == d.SequenceNumber>>48 })
		if x == nil {
			m.rt.Fatalf("%s should not have been delivered\n%s", d.Payload, m.Dump())
		}
		m.give(x, d, c)
	}
	if x := next(func(*modelMessage) bool { return true }); x != nil && c.credit > 0 {
		m.rt.Fatalf("%v was not delivered\n%s", x, m.Dump())
	}
}

// give locks x for the client that got d, which must be x.
func (m *model) give(x *modelMessage, d Delivery, c *modelClient) {
	x.held = d
	c.credit--
	x.place, x.until = inLocked, m.Now().Add(modelLock)
	until := x.until
	if m.sessions {
		x.until, until = time.Time{}, c.until
	}
	if d.SequenceNumber != x.seq || string(d.Payload) != x.text || int(d.DeliveryCount) != x.attempts || !d.LockedUntil.Equal(until) {
		m.rt.Fatalf("want %v until %v, delivered #%d %s attempts=%d until %v\n%s", x, until, d.SequenceNumber, d.Payload, d.DeliveryCount, d.LockedUntil, m.Dump())
	}
}

// compare checks everything that clients can observe.
func (m *model) compare(rt *rapid.T) {
	m.deliver()
	got, err := m.Peek("q", PeekOptions{Count: 10000})
	if err != nil {
		rt.Fatal(err)
	}
	slices.SortFunc(m.messages, func(a, b *modelMessage) int { return cmp.Compare(a.seq, b.seq) })
	visible := slices.DeleteFunc(slices.Clone(m.messages), func(x *modelMessage) bool { return m.due(x.expires) }) // locked ones remain
	for i := range max(len(got), len(visible)) {
		if i >= len(got) || i >= len(visible) || !m.same(got[i], visible[i]) {
			rt.Fatalf("the queue differs from the model: %q, want %v\n%s", payloads(got), visible, m.Dump())
		}
	}
	dead, err := m.Peek("q/$deadletterqueue", PeekOptions{Count: 10000})
	if err != nil {
		rt.Fatal(err)
	}
	var texts []string
	for _, d := range dead {
		texts = append(texts, fmt.Sprint(string(d.Payload), " ", d.DeliveryCount))
	}
	want := slices.Clone(m.dead)
	slices.Sort(texts)
	slices.Sort(want)
	if !slices.Equal(texts, want) {
		rt.Fatalf("dead letters %q, want %q\n%s", texts, want, m.Dump())
	}
}

func (m *model) same(d Delivery, x *modelMessage) bool {
	state := Active
	switch {
	case x.place == inScheduled:
		state = Scheduled
	case x.deferred:
		state = Deferred
	}
	return d.SequenceNumber == x.seq && string(d.Payload) == x.text && int(d.DeliveryCount) == x.attempts && d.State == state && d.ExpiresAt.Equal(x.expires)
}
