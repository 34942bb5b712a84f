package relay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/relay/relayfeed"
	"feedbox/tests/testenv"
)

// logFeed is a feed of one range over lines in memory, "key id sequence".
type logFeed struct {
	mu    sync.Mutex // guards the fields below
	lines []string
	at    []int64 // commit time of each line
}

func (f *logFeed) append(lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, lines...)
	for range lines {
		f.at = append(f.at, time.Now().Unix())
	}
}

func (*logFeed) Source(context.Context) (changefeed.Source, error) {
	return changefeed.Source{Host: "h", Database: "d", Container: "c"}, nil
}

func (*logFeed) Ranges(context.Context) ([]changefeed.FeedRange, error) {
	return []changefeed.FeedRange{changefeed.FullRange()}, nil
}

func (f *logFeed) Now(context.Context, changefeed.FeedRange) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strconv.Itoa(len(f.lines)), nil
}

func (f *logFeed) Read(_ context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, _ := strconv.Atoi(req.Continuation)
	to := min(from+req.MaxItems, len(f.lines))
	page := &changefeed.Page{Continuation: strconv.Itoa(to), CaughtUp: from == to, EndLSN: int64(len(f.lines))}
	for i, line := range f.lines[from:to] {
		key, _, _ := strings.Cut(line, " ")
		page.Items = append(page.Items, changefeed.Item{
			Raw: json.RawMessage(line), Key: []byte(key), LSN: int64(from + i + 1), Timestamp: f.at[from+i],
		})
	}
	return page, nil
}

// The processor and the relay handle 20,000 events of 2,000 keys, 200 of them invalid. Exactly those
// and the later events of their keys are parked, and all others are sent in order. Then the
// invalid ones are edited and retried, while new events of their keys arrive.
func TestPoisonEventsHoldBackOnlyTheirKeys(t *testing.T) {
	rng := testenv.Random(t)
	synctest.Test(t, func(t *testing.T) {
		const keys, each, bad = 2000, 10, 200
		poisoned := map[string]int{} // key: sequence of its first bad event
		badIDs := map[string]bool{}
		for len(badIDs) < bad {
			key, n := fmt.Sprintf("k%d", rng.IntN(keys)), 1+rng.IntN(each)
			badIDs[fmt.Sprintf("%s.%d", key, n)] = true
			if first, ok := poisoned[key]; !ok || n < first {
				poisoned[key] = n
			}
		}
		feed := &logFeed{}
		next := make([]int, keys)
		for range keys * each {
			k := rng.IntN(keys)
			for next[k] == each {
				k = (k + 1) % keys
			}
			next[k]++
			line := fmt.Sprintf("k%d k%d.%d %d", k, k, next[k], next[k])
			if badIDs[fmt.Sprintf("k%d.%d", k, next[k])] {
				line = fmt.Sprintf("k%d k%d.%d ?", k, k, next[k])
			}
			feed.append(line)
		}

		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		h := relayfeed.NewHandler(r)
		p, err := changefeed.New(feed, memstore.New(nil), h, &changefeed.Options{
			Lanes: 4, MaxItems: 500, MaxAttempts: 3, DeadLetter: h.Park, Observer: &changefeed.Observer{},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		running.Go(func() { _ = newDrainer(t, mem, b, relay.DrainOptions{}, nil).Run(ctx) })
		settle(10 * time.Minute)

		b.mu.Lock()
		for k := range keys {
			key, want := fmt.Sprintf("k%d", k), each
			if first, ok := poisoned[key]; ok {
				want = first - 1
			}
			if got := b.got[key]; len(got) != want || !inOrder(key, got) {
				t.Errorf("%s: sent %v, want the first %d", key, got, want)
			}
			var parked []string
			for _, id := range parkedIDs(t, mem, key) {
				parked = append(parked, strings.Fields(id)[0])
			}
			if len(parked) != each-want || !slices.IsSortedFunc(parked, bySequence) {
				t.Errorf("%s: parked %v, want the last %d", key, parked, each-want)
			}
		}
		b.mu.Unlock()
		if t.Failed() {
			cancel()
			running.Wait()
			return
		}

		for key := range poisoned {
			for n := 1; n <= each; n++ {
				mem.ReplaceEvent(key, fmt.Sprintf("%s.%d", key, n), fmt.Appendf(nil, "%s %s.%d %d", key, key, n, n))
			}
			setIntent(t, mem, key, relay.Intent{Verb: relay.VerbRetry})
		}
		for n := each + 1; n <= each+20; n++ {
			for key := range poisoned {
				feed.append(fmt.Sprintf("%s %s.%d %d", key, key, n, n))
			}
			time.Sleep(500 * time.Millisecond)
		}
		settle(10 * time.Minute)
		cancel()
		running.Wait()
		for k := range keys {
			key, want := fmt.Sprintf("k%d", k), each
			if poisoned[key] != 0 {
				want += 20
			}
			if got := b.got[key]; len(got) != want || !inOrder(key, got) {
				t.Errorf("%s: sent %v, want %d in order", key, got, want)
			}
		}
		if closed, _ := mem.Closed(t.Context()); len(closed) != 0 {
			t.Errorf("%d gates are still closed", len(closed))
		}
	})
}

// inOrder reports whether ids are key.1, key.2, ... without a gap.
func inOrder(key string, ids []string) bool {
	for i, id := range ids {
		if id != fmt.Sprintf("%s.%d", key, i+1) {
			return false
		}
	}
	return true
}

func bySequence(a, b string) int {
	_, x, _ := strings.Cut(a, ".")
	_, y, _ := strings.Cut(b, ".")
	n, _ := strconv.Atoi(x)
	m, _ := strconv.Atoi(y)
	return n - m
}
