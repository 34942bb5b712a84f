package broker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/tests/testenv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// workload is several publishers and consumers of a topic. They record every answer, so that a
// copy of the disk from any moment can be checked.
type workload struct {
	rig
	mu        sync.Mutex
	order     map[string][]string // ids by session, as they were sent
	sent      map[string]bool     // acknowledged
	tried     map[string]bool     // Complete was called
	completed map[string]bool     // acknowledged
	abandons  map[string][2]int   // acknowledged, called
	reach     int                 // acknowledged sends until the crash
	reached   chan struct{}       // closed then
}

const crashSessions = 6

// TestCrash copies the disk under load, drops unsynced writes and opens the copy. Nothing
// acknowledged is lost, nothing completed is redelivered, and order, delivery counts and the
// duplicate history are unchanged.
func TestCrash(t *testing.T) {
	seed := testenv.Random(t).Uint64()
	for i := range uint64(testenv.Sample(t, 8, 40)) { //nolint:gosec // positive
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { crashOnce(t, rand.New(rand.NewPCG(seed, i))) })
		})
	}
}

func crashOnce(t *testing.T, random *rand.Rand) {
	w := &workload{
		rig: rig{t: t, fs: vfs.NewCrashableMem(), cache: random.Int64N(2)}, order: make(map[string][]string), sent: make(map[string]bool),
		tried: make(map[string]bool), completed: make(map[string]bool), abandons: make(map[string][2]int),
	}
	w.reach, w.reached = 1+random.IntN(1500), make(chan struct{})
	w.open(w.fs)
	w.topic("t", Topic{RequiresDuplicateDetection: true})
	w.subscription("t", "s", Subscription{RequiresSession: true, MaxDeliveryCount: 2000})
	w.subscription("t", "archive", Subscription{})
	stop := make(chan struct{})
	var all sync.WaitGroup
	for s := range crashSessions {
		all.Go(func() { w.publish(fmt.Sprint(s), stop) })
	}
	for c := range uint64(3) {
		consumer := rand.New(rand.NewPCG(random.Uint64(), c))
		all.Go(func() { w.consume(consumer, stop) })
	}
	<-w.reached
	w.mu.Lock()
	before := w.copy()
	w.mu.Unlock()
	left := w.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 0, 50, 100}[random.IntN(4)], RNG: random})
	w.mu.Lock()
	after := w.copy()
	w.mu.Unlock()
	close(stop)
	all.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.fs = left
	w.open(left)
	defer func() { w.Close() }()
	w.judge(before, after)
}

func (w *workload) copy() *workload {
	c := &workload{order: make(map[string][]string), sent: make(map[string]bool), tried: make(map[string]bool), completed: make(map[string]bool), abandons: make(map[string][2]int)}
	for k, v := range w.order {
		c.order[k] = slices.Clone(v)
	}
	for _, pair := range [][2]map[string]bool{{c.sent, w.sent}, {c.tried, w.tried}, {c.completed, w.completed}} {
		for k := range pair[1] {
			pair[0][k] = true
		}
	}
	for k, v := range w.abandons {
		c.abandons[k] = v
	}
	return c
}

// publish sends batches of one session, each after the last was acknowledged. Each repeats one
// id of the batch before, a duplicate.
func (w *workload) publish(session string, stop chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		var batch []Message
		w.mu.Lock()
		for i := range 5 {
			id := fmt.Sprintf("%s-%04d-%d", session, n, i)
			w.order[session] = append(w.order[session], id)
			batch = append(batch, of(session, id))
		}
		w.mu.Unlock()
		if n > 0 {
			batch = append(batch, of(session, fmt.Sprintf("%s-%04d-0", session, n-1)))
		}
		done := make(chan error, 1)
		w.Send("t", batch, func(err error) {
			if err == nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				early := len(w.sent) < w.reach
				for _, m := range batch {
					w.sent[m.MessageID] = true
				}
				if early && len(w.sent) >= w.reach {
					close(w.reached)
				}
			}
			done <- err
		})
		if err := <-done; err != nil {
			w.t.Errorf("send: %v", err)
			return
		}
	}
}

// consume accepts sessions and completes or abandons their messages in order.
func (w *workload) consume(random *rand.Rand, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		c, err := w.tryAccept("t/subscriptions/s", nil, time.Millisecond)
		if err != nil {
			continue
		}
		c.AddCredit(uint32(1 + random.IntN(20)))
		for _, d := range c.taken() {
			if !w.settleOne(c, d, random.IntN(10) > 0) {
				break
			}
		}
		c.Close()
	}
}

// settleOne reports whether the message was completed.
func (w *workload) settleOne(c *client, d Delivery, complete bool) bool {
	id, kind := d.MessageID, Complete
	w.mu.Lock()
	if complete {
		w.tried[id] = true
	} else {
		n := w.abandons[id]
		w.abandons[id], kind = [2]int{n[0], n[1] + 1}, Abandon
	}
	w.mu.Unlock()
	done := make(chan error, 1)
	c.Settle(d.LockToken, Outcome{Kind: kind}, func(err error) {
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			if complete {
				w.completed[id] = true
			} else {
				n := w.abandons[id]
				w.abandons[id] = [2]int{n[0] + 1, n[1]}
			}
		}
		done <- err
	})
	if err := <-done; err != nil {
		w.t.Errorf("settle %s: %v", id, err)
	}
	return complete
}

// judge checks the reopened broker against the records from before and after the copy.
func (w *workload) judge(before, after *workload) {
	w.t.Logf("%d sent, %d completed before the crash", len(before.sent), len(before.completed))
	w.holds("t/subscriptions/archive", before, after, false)
	w.holds("t/subscriptions/s", before, after, true)
	// Sending everything again adds the lost messages only.
	for session, ids := range after.order {
		for batch := range slices.Chunk(ids, 50) {
			var again []Message
			for _, id := range batch {
				again = append(again, of(session, id))
			}
			w.send("t", again...)
		}
	}
	ds, err := w.Peek("t/subscriptions/archive", PeekOptions{Count: 1 << 20})
	if err != nil {
		w.t.Fatal(err)
	}
	count := make(map[string]int)
	for i, d := range ds {
		count[d.MessageID]++
		if count[d.MessageID] > 1 || i > 0 && d.SequenceNumber <= ds[i-1].SequenceNumber {
			w.t.Errorf("%s, number %d, after number %d: %d times", d.MessageID, d.SequenceNumber, ds[max(0, i-1)].SequenceNumber, count[d.MessageID])
		}
	}
	for _, ids := range after.order {
		for _, id := range ids {
			if count[id] != 1 {
				w.t.Errorf("%s is there %d times after it was sent again", id, count[id])
			}
		}
	}
}

// holds checks the messages of a subscription.
func (w *workload) holds(path string, before, after *workload, consumed bool) {
	ds, err := w.Peek(path, PeekOptions{Count: 1 << 20})
	if err != nil {
		w.t.Fatal(err)
	}
	there := make(map[string]Delivery)
	rank := make(map[string]int)
	for _, ids := range after.order {
		for i, id := range ids {
			rank[id] = i
		}
	}
	last := make(map[string]int)
	for _, d := range ds {
		there[d.MessageID] = d
		if r, known := rank[d.MessageID]; !known || r < last[d.SessionID] {
			w.t.Errorf("%s: %s is out of order", path, d.MessageID)
		} else {
			last[d.SessionID] = r
		}
		if consumed && before.completed[d.MessageID] {
			w.t.Errorf("%s: %s was completed and is back", path, d.MessageID)
		}
		low, high := before.abandons[d.MessageID][0], after.abandons[d.MessageID][1]
		if n := int(d.DeliveryCount); consumed && (n < low || n > high) {
			w.t.Errorf("%s: %s has delivery count %d, want %d to %d", path, d.MessageID, n, low, high)
		}
		if string(d.Payload) != d.MessageID || !strings.HasPrefix(d.MessageID, d.SessionID+"-") {
			w.t.Errorf("%s: %+v", path, d)
		}
	}
	for id := range before.sent {
		if _, ok := there[id]; !ok && (!consumed || !after.tried[id]) {
			w.t.Errorf("%s: %s was acknowledged and is lost", path, id)
		}
	}
}
