package broker

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// rig is a broker under test inside a synctest bubble.
type rig struct {
	*Broker
	t  *testing.T
	fs *vfs.MemFS // nil in memory mode
	// cache is Options.CacheBytes; with 1 every waiting message is swapped out.
	cache int64
	// partitions is Options.Partitions.
	partitions int
}

// modes runs a test in memory and on storage.
func modes(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { mode(t, rig{}, test) })
	durable(t, test)
}

// durable runs a test on storage only, once with all waiting messages swapped out.
func durable(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run("durable", func(t *testing.T) { mode(t, rig{fs: vfs.NewCrashableMem()}, test) })
	t.Run("swapping", func(t *testing.T) { mode(t, rig{fs: vfs.NewCrashableMem(), cache: 1}, test) })
}

func mode(t *testing.T, r rig, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r.t = t
		r.open(r.fs)
		defer func() { r.Close() }()
		test(t, &r)
	})
}

func (r *rig) open(fs *vfs.MemFS) {
	r.t.Helper()
	o := &Options{DecodeFields: decodeText, ApplyChanges: changeText, Partitions: r.partitions}
	if fs != nil {
		o.FS, o.Dir = fs, "bus"
		o.CacheBytes = r.cache
	}
	b, err := Open(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Broker = b
}

// crash loses all unsynced writes and opens the rest.
func (r *rig) crash() {
	r.t.Helper()
	left := r.fs.CrashClone(vfs.CrashCloneCfg{})
	if err := r.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.fs = left
	r.open(left)
}

// changeText appends the changes of an action.
func changeText(payload []byte, _ *sqlfilter.Fields, changes []sqlfilter.Change) ([]byte, error) {
	for _, c := range changes {
		payload = fmt.Appendf(slices.Clip(payload), " %s=%v", c.Property, c.Value)
	}
	return payload, nil
}

// decodeText reads fields from payloads like "subject=a color=red".
func decodeText(payload []byte) (sqlfilter.Fields, error) {
	f := sqlfilter.Fields{Properties: map[string]any{}}
	for _, pair := range strings.Fields(string(payload)) {
		name, value, ok := strings.Cut(pair, "=")
		switch {
		case !ok && name == "broken":
			return f, fmt.Errorf("broken payload")
		case !ok:
		case name == "subject":
			f.Subject = value
		default:
			f.Properties[name] = value
		}
	}
	return f, nil
}

func (r *rig) queue(name string, p Queue) {
	r.t.Helper()
	p.Name = name
	if _, err := r.CreateQueue(r.t.Context(), p); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) topic(name string, p Topic) {
	r.t.Helper()
	p.Name = name
	if _, err := r.CreateTopic(r.t.Context(), p); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) subscription(topic, name string, p Subscription) {
	r.t.Helper()
	p.Name = name
	if _, err := r.CreateSubscription(r.t.Context(), topic, p); err != nil {
		r.t.Fatal(err)
	}
}

// trySend sends and waits for the answer.
func (r *rig) trySend(path string, batch ...Message) error {
	done := make(chan error, 1)
	r.Send(path, batch, func(err error) { done <- err })
	return <-done
}

func (r *rig) send(path string, batch ...Message) {
	r.t.Helper()
	if err := r.trySend(path, batch...); err != nil {
		r.t.Fatalf("send to %s: %v", path, err)
	}
}

// msg is a message with that payload and id.
func msg(s string) Message { return Message{Payload: []byte(s), MessageID: s} }

// of is a message of a session.
func of(session, s string) Message {
	m := msg(s)
	m.SessionID, m.HasSession = session, true
	return m
}

// client is a receiver that collects its deliveries.
type client struct {
	*Receiver
	r *rig

	mu     sync.Mutex
	got    []Delivery
	closed error
}

func (c *client) options(mode Mode) ReceiverOptions {
	return ReceiverOptions{
		Mode: mode,
		Deliver: func(d []Delivery) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.got = append(c.got, d...)
		},
		Closed: func(err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.closed = err
		},
	}
}

func (r *rig) receive(path string, credit uint32) *client {
	r.t.Helper()
	c := &client{r: r}
	var err error
	if c.Receiver, err = r.OpenReceiver(path, c.options(PeekLock)); err != nil {
		r.t.Fatal(err)
	}
	c.AddCredit(credit)
	return c
}

// tryAccept accepts a session (nil: the next one).
func (r *rig) tryAccept(path string, session *string, timeout time.Duration) (*client, error) {
	c := &client{r: r}
	done := make(chan error, 1)
	r.AcceptSession(path, AcceptOptions{Session: session, Timeout: timeout}, c.options(PeekLock), func(x *Receiver, err error) {
		c.Receiver = x
		done <- err
	})
	return c, <-done
}

func (r *rig) accept(path, session string, credit uint32) *client {
	r.t.Helper()
	c, err := r.tryAccept(path, &session, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	c.AddCredit(credit)
	return c
}

// take returns what has arrived since the last take.
func (c *client) take() []Delivery {
	synctest.Wait()
	return c.taken()
}

// taken is take without waiting, for several goroutines.
func (c *client) taken() []Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

// one returns the only message that has arrived.
func (c *client) one() Delivery {
	c.r.t.Helper()
	got := c.take()
	if len(got) != 1 {
		c.r.t.Fatalf("got %d messages %v, want 1\n%s", len(got), payloads(got), c.r.Dump())
	}
	return got[0]
}

// want checks what has arrived since the last take.
func (c *client) want(payloadTexts ...string) []Delivery {
	c.r.t.Helper()
	got := c.take()
	if !slices.Equal(payloads(got), payloadTexts) {
		c.r.t.Fatalf("got %q, want %q\n%s", payloads(got), payloadTexts, c.r.Dump())
	}
	return got
}

func (c *client) lost() error {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func payloads(ds []Delivery) []string {
	texts := []string{}
	for _, d := range ds {
		texts = append(texts, string(d.Payload))
	}
	return texts
}

func (c *client) trySettle(d Delivery, o Outcome) error {
	done := make(chan error, 1)
	c.Settle(d.LockToken, o, func(err error) { done <- err })
	return <-done
}

func (c *client) settle(d Delivery, kind OutcomeKind) {
	c.r.t.Helper()
	if err := c.trySettle(d, Outcome{Kind: kind}); err != nil {
		c.r.t.Fatalf("settle %s: %v", d.Payload, err)
	}
}

// peek returns the texts of all messages of an entity.
func (r *rig) peek(path string) []string {
	r.t.Helper()
	synctest.Wait()
	ds, err := r.Peek(path, PeekOptions{Count: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	return payloads(ds)
}

func (r *rig) wantPeek(path string, payloadTexts ...string) {
	r.t.Helper()
	if got := r.peek(path); !slices.Equal(got, append([]string{}, payloadTexts...)) {
		r.t.Fatalf("%s holds %q, want %q\n%s", path, got, payloadTexts, r.Dump())
	}
}

// await waits until all background work is durable.
func (r *rig) await() {
	if r.store != nil {
		r.store.await()
	}
}

// records counts the records of a kind in the store.
func (r *rig) records(kind byte) (n int) {
	r.t.Helper()
	l := &loader{db: r.store.db}
	if err := l.each(kind, func(_, _ []byte) error { n++; return nil }); err != nil {
		r.t.Fatal(err)
	}
	return n
}
