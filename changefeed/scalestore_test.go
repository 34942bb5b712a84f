package changefeed_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator/plan"
)

// charges are the requests of a fleet and their estimated request units. The charges are those
// of feedbox plan: a write and a point read by Microsoft's table of document sizes, a listing
// 2.3 RU, 0.02 per row and 0.1 per KB, a read of the feed 1 RU and 0.05 per document.
type charges struct {
	Looks, Rows, Bytes                 float64 // listings, their records and the size of these
	LookRU, Writes, WriteRU, Conflicts float64
	Polls, PollRU, Throttled           float64
	Peak                               float64 // the most RU of leases in one second
}

func (c charges) since(before charges) charges {
	return charges{
		c.Looks - before.Looks, c.Rows - before.Rows, c.Bytes - before.Bytes, c.LookRU - before.LookRU,
		c.Writes - before.Writes, c.WriteRU - before.WriteRU, c.Conflicts - before.Conflicts, c.Polls - before.Polls, c.PollRU - before.PollRU, c.Throttled - before.Throttled, c.Peak,
	}
}

// plus adds the charges of another store. Its peak need not be in the same second, so the sum is too high.
func (c charges) plus(o charges) charges {
	return charges{
		c.Looks + o.Looks, c.Rows + o.Rows, c.Bytes + o.Bytes, c.LookRU + o.LookRU, c.Writes + o.Writes, c.WriteRU + o.WriteRU, c.Conflicts + o.Conflicts,
		c.Polls + o.Polls, c.PollRU + o.PollRU, c.Throttled + o.Throttled, c.Peak + o.Peak,
	}
}

func (c charges) lease() float64 { return c.LookRU + c.WriteRU }

// The duration of a request. A listing returns 1,000 records at a time, because a response of
// Azure Cosmos DB has at most 4 MB and its pages are usually smaller.
const (
	requestTime = 5 * time.Millisecond
	pageTime    = 15 * time.Millisecond
	pageRows    = 1000
	systemBytes = 200 // members that the service adds to a record
)

// costedStore is a lease store that counts requests. Its records share one body, because a
// copy for each of a thousand hosts would measure the test.
type costedStore struct {
	mu     sync.Mutex // guards the fields below
	slots  map[string]int
	rows   []changefeed.Record
	bytes  int
	etags  uint64
	total  charges
	second int64   // of the clock
	spent  float64 // in that second
}

func newCostedStore() *costedStore { return &costedStore{slots: map[string]int{}} }

// costs returns the charges so far, and begins another peak.
func (s *costedStore) costs() charges {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := s.total
	s.total.Peak = 0
	return total
}

// charge adds to a count. Called with mu.
func (s *costedStore) charge(to *float64, units float64) {
	*to += units
	if now := time.Now().Unix(); now != s.second {
		s.second, s.spent = now, 0
	}
	s.spent += units
	s.total.Peak = max(s.total.Peak, s.spent)
}

// write stores a record if allowed. Failed conditions are charged, as the service does.
func (s *costedStore) write(ctx context.Context, r changefeed.Record, allowed func(slot int, there bool) error) (string, error) {
	if err := pause(ctx, requestTime); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, units := plan.Charge(len(r.Body) + systemBytes)
	s.total.Writes++
	s.charge(&s.total.WriteRU, units)
	slot, there := s.slots[r.ID]
	if err := allowed(slot, there); err != nil {
		s.total.Conflicts++
		return "", err
	}
	s.etags++
	r.ETag = strconv.FormatUint(s.etags, 16)
	if !there {
		slot = len(s.rows)
		s.slots[r.ID], s.rows = slot, append(s.rows, changefeed.Record{})
	}
	s.bytes += len(r.Body) - len(s.rows[slot].Body)
	s.rows[slot] = r
	return r.ETag, nil
}

func (s *costedStore) matches(etag string) func(int, bool) error {
	return func(slot int, there bool) error {
		switch {
		case !there:
			return changefeed.ErrNotFound
		case s.rows[slot].ETag != etag:
			return changefeed.ErrETagMismatch
		}
		return nil
	}
}

func (s *costedStore) List(ctx context.Context, _ string) ([]changefeed.Record, error) {
	s.mu.Lock()
	pages := 1 + len(s.rows)/pageRows
	s.mu.Unlock()
	if err := pause(ctx, time.Duration(pages)*pageTime); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := float64(len(s.rows)), float64(s.bytes+systemBytes*len(s.rows))
	s.total.Looks++
	s.total.Rows += n
	s.total.Bytes += size
	s.charge(&s.total.LookRU, plan.QueryCharge(n, size/1024))
	return append([]changefeed.Record(nil), s.rows...), nil
}

func (s *costedStore) Read(ctx context.Context, id string) (changefeed.Record, error) {
	if err := pause(ctx, requestTime); err != nil {
		return changefeed.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, there := s.slots[id]
	if !there {
		return changefeed.Record{}, changefeed.ErrNotFound
	}
	units, _ := plan.Charge(len(s.rows[slot].Body) + systemBytes)
	s.charge(&s.total.WriteRU, units) // with the writes, because only conflicts and splits cause it
	return s.rows[slot], nil
}

func (s *costedStore) Create(ctx context.Context, r changefeed.Record) (string, error) {
	return s.write(ctx, r, func(_ int, there bool) error {
		if there {
			return changefeed.ErrExists
		}
		return nil
	})
}

func (s *costedStore) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	return s.write(ctx, r, s.matches(r.ETag))
}

func (s *costedStore) Delete(ctx context.Context, id, etag string) error {
	if err := pause(ctx, requestTime); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slots[id]
	if err := s.matches(etag)(slot, s.rows[slot].ID == id); err != nil {
		return err
	}
	_, units := plan.Charge(len(s.rows[slot].Body) + systemBytes)
	s.charge(&s.total.WriteRU, units)
	last := len(s.rows) - 1
	s.bytes -= len(s.rows[slot].Body)
	s.rows[slot] = s.rows[last]
	s.slots[s.rows[slot].ID] = slot
	s.rows = s.rows[:last]
	delete(s.slots, id)
	return nil
}

// cutStore is a host's connection to the store, which a crash cuts.
type cutStore struct {
	changefeed.LeaseStore
	cut *atomic.Bool
}

func (s cutStore) List(ctx context.Context, p string) ([]changefeed.Record, error) {
	if s.cut.Load() {
		return nil, errCut
	}
	return s.LeaseStore.List(ctx, p)
}

func (s cutStore) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	if s.cut.Load() {
		return "", errCut
	}
	return s.LeaseStore.Replace(ctx, r)
}
