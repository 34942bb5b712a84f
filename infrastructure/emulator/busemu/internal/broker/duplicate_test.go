package broker

import (
	"strconv"
	"testing"
	"time"
)

func window(d time.Duration) Queue {
	return Queue{RequiresDuplicateDetection: true, DuplicateDetectionWindow: d}
}

func TestDuplicateWindowEdges(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", window(20*time.Second))
		r.send("q", msg("a"))
		time.Sleep(10 * time.Second)
		r.send("q", msg("a")) // does not move the window
		time.Sleep(10*time.Second - 1)
		r.send("q", msg("a"))
		r.wantPeek("q", "a")
		time.Sleep(time.Nanosecond)
		r.send("q", msg("a")) // 20 s after the first copy: a new message, a new window
		r.wantPeek("q", "a", "a")
		r.Advance(20*time.Second - 1)
		r.send("q", msg("a"))
		r.wantPeek("q", "a", "a")
		r.Advance(1)
		r.send("q", msg("a"))
		r.wantPeek("q", "a", "a", "a")
		if n, _ := r.Counters("q"); n.Accepted != 6 || n.Duplicates != 3 {
			t.Errorf("counters %+v", n)
		}
	})
}

func TestDuplicatesAfterCompletionAndInOneBatch(t *testing.T) {
	modes(t, func(_ *testing.T, r *rig) {
		r.queue("q", window(0))
		r.send("q", msg("a"), msg("b"), msg("a"), Message{Payload: []byte("no id")}, Message{Payload: []byte("no id")})
		r.wantPeek("q", "a", "b", "no id", "no id")
		c := r.receive("q", 1)
		c.settle(c.want("a")[0], Complete)
		r.send("q", msg("a"))
		m := msg("b")
		m.ScheduledAt = r.Now().Add(time.Hour)
		r.send("q", m)
		s := msg("c")
		s.ScheduledAt = r.Now().Add(time.Hour)
		r.send("q", s, msg("c"))
		time.Sleep(9 * time.Minute)
		r.wantPeek("q", "b", "no id", "no id", "c")
	})
}

func TestRefusedBatchLeavesNoTrace(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", window(0))
		large := Message{Payload: make([]byte, StandardMaxMessageSize+1), MessageID: "large"}
		if err := r.trySend("q", msg("a"), large); err == nil {
			t.Fatal("accepted")
		}
		r.send("q", msg("a"))
		r.wantPeek("q", "a")
	})
}

func TestPartitionsDetectDuplicatesSeparately(t *testing.T) {
	modes(t, func(_ *testing.T, r *rig) {
		r.queue("q", Queue{RequiresDuplicateDetection: true, Partitioned: true})
		r.send("q", of("x", "a"))
		r.send("q", of("y", "a"))
		r.send("q", of("x", "a"))
		m := msg("a")
		m.PartitionKey = "y"
		r.send("q", m)
		r.send("q", msg("a"))
		r.wantPeek("q", "a", "a", "a")
	})
}

func TestDuplicateWindowSurvivesCrash(t *testing.T) {
	durable(t, func(_ *testing.T, r *rig) {
		r.queue("q", window(20*time.Second))
		r.send("q", msg("old"))
		time.Sleep(12 * time.Second)
		for i := range 100 {
			r.send("q", msg(strconv.Itoa(i)))
		}
		c := r.receive("q", 200)
		for _, d := range c.take() {
			c.settle(d, Complete)
		}
		r.crash()
		time.Sleep(8*time.Second - 1)
		r.send("q", msg("old"), msg("50"))
		r.wantPeek("q")
		time.Sleep(time.Nanosecond)
		r.send("q", msg("old"), msg("50"))
		r.wantPeek("q", "old")
		r.crash()
		time.Sleep(12 * time.Second)
		r.send("q", msg("old"), msg("50"))
		r.wantPeek("q", "old", "50")
	})
}

func TestHistoryIsForgotten(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		r.queue("q", window(20*time.Second))
		for i := range 50 {
			r.send("q", msg(strconv.Itoa(i)))
			time.Sleep(time.Second)
		}
		in, err := r.inletAt("q")
		if err != nil {
			t.Fatal(err)
		}
		remembered := func() int {
			in.mu.Lock()
			defer in.mu.Unlock()
			return len(in.history.seen)
		}
		if n := remembered(); n > 21 {
			t.Errorf("%d ids remembered", n)
		}
		time.Sleep(time.Minute)
		r.await()
		if n := remembered(); n != 0 {
			t.Errorf("%d ids remembered", n)
		}
		if n := r.records(kindHistory); n != 0 {
			t.Errorf("%d records left", n)
		}
	})
}
