package simulation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"feedbox/changefeed"
)

// maxFaults keeps a broken run's report readable.
const maxFaults = 20

// verifier checks the invariants of every run. It sees each lease as it is stored, so it
// knows the owner of a key at any moment, which no host can. The deliveries of a zombie are
// counted and otherwise ignored: they neither count as delivered nor have an order, because
// a zombie may have read versions that its successor never sees, and the other way round.
type verifier struct {
	mu       sync.Mutex // guards the fields below
	changes  []*change  // by serial
	waiting  map[*change]bool
	latest   map[string]*change // by key and id
	last     map[string]int     // highest serial delivered by an owner, by key
	leases   map[string]holder  // as last stored with an owner, by id
	journal  journal
	steps    Steps // nil if nothing is recorded
	faults   []string
	total    int
	repeated int
	zombies  int
}

// change is one written version of a document.
type change struct {
	key, id   string
	epk       string
	serial    int
	lsn       int64
	delivered bool // by an owner
}

// holder is the owner of a lease.
type holder struct {
	in    changefeed.FeedRange
	owner string
	epoch int64
}

// delivery is one document that a handler sent.
type delivery struct {
	host, lease string
	epoch       int64
	serial      int
	excused     bool // the host could not detect that it was stopped
	beside      bool // another product takes part, which takes leases from live owners and keeps their epoch
}

func newVerifier() *verifier {
	return &verifier{
		waiting: map[*change]bool{}, latest: map[string]*change{}, last: map[string]int{},
		leases: map[string]holder{}, journal: journal{began: time.Now()},
	}
}

func (v *verifier) fault(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faultLocked(nil, format, args...)
}

// faultLocked reports a violation, with the events of the change it is about.
func (v *verifier) faultLocked(c *change, format string, args ...any) {
	if len(v.faults) >= maxFaults {
		return
	}
	text := fmt.Sprintf(format, args...)
	if c != nil && len(v.faults) < 3 {
		text += v.journal.eventsOf(c.key, c.epk)
	}
	v.faults = append(v.faults, text)
}

// logEvent adds an event of a host to the journal.
func (v *verifier) logEvent(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.journal.note("", changefeed.FullRange(), format, args...)
}

// written records a change. It must be called before any reader can see it.
func (v *verifier) written(key, id, epk string) *change {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &change{key: key, id: id, epk: epk, serial: len(v.changes)}
	v.changes = append(v.changes, c)
	if before := v.latest[key+"/"+id]; v.steps != nil && before != nil {
		v.steps.Gone(before.serial + 1)
	}
	return c
}

// committed records its LSN. The version before it need not be delivered any more.
func (v *verifier) committed(c *change, lsn int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.journal.note(c.key, changefeed.FeedRange{}, "serial %d of %s is written, LSN %d", c.serial, c.id, lsn)
	name := c.key + "/" + c.id
	delete(v.waiting, v.latest[name])
	v.latest[name] = c
	c.lsn = lsn
	if v.steps != nil {
		v.steps.Commit(c.serial+1, c.key, c.epk, lsn)
	}
	if !c.delivered {
		v.waiting[c] = true
	}
}

// delivered checks V2 and V3.
func (v *verifier) delivered(d delivery) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.total++
	if d.serial >= len(v.changes) {
		v.faultLocked(nil, "V1 %s delivered serial %d, which was never written", d.host, d.serial)
		return
	}
	c := v.changes[d.serial]
	v.journal.note(c.key, changefeed.FeedRange{}, "serial %d is sent by %s with epoch %d of %s", d.serial, d.host, d.epoch, d.lease)
	now := v.holder(c.epk)
	stolen := d.beside && now.epoch == d.epoch && now.owner != d.host
	if now.epoch > d.epoch || stolen {
		v.journal.note(c.key, changefeed.FeedRange{}, "  which is a zombie")
		v.zombies++
		if !d.excused && !stolen {
			v.faultLocked(c, "V3 key %s: %s delivers serial %d with epoch %d of %s, owned by %s with epoch %d",
				c.key, d.host, d.serial, d.epoch, d.lease, now.owner, now.epoch)
		}
		return
	}
	delete(v.waiting, c)
	if v.steps != nil {
		v.steps.Done(d.host, d.serial+1)
	}
	if c.delivered {
		v.repeated++
		return
	}
	c.delivered = true
	if last, some := v.last[c.key]; some && d.serial < last {
		v.faultLocked(c, "V2 key %s: %s first delivers serial %d after %d", c.key, d.host, d.serial, last)
	}
	v.last[c.key] = max(v.last[c.key], d.serial)
}

// holder returns the last owner of the range of an effective partition key.
func (v *verifier) holder(epk string) (now holder) {
	for _, h := range v.leases {
		if h.epoch > now.epoch && h.in.Has(epk) {
			now = h
		}
	}
	return now
}

// stored checks V4 on a lease as it is written.
func (v *verifier) stored(r changefeed.Record) {
	if !strings.Contains(r.ID, "..") {
		return
	}
	l, err := decodeLease(r)
	if err != nil {
		v.fault("V4 lease %s: %v", r.ID, err)
		return
	}
	in, position := l.FeedRange.Range, l.position()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.journal.note("", in, "lease %s is stored: owner %q, epoch %s, position %s", r.ID, l.owner(), l.Properties["epoch"], position)
	epoch, err := l.epoch()
	if err != nil {
		v.faultLocked(nil, "V3 lease %s: epoch %q", r.ID, l.Properties["epoch"])
		return
	}
	if l.owner() != "" {
		v.leases[r.ID] = holder{in: in, owner: l.owner(), epoch: epoch}
	}
	v.checkAhead(&l, epoch)
	if position == "" {
		return
	}
	lsn, err := strconv.ParseInt(strings.Trim(position, `"`), 10, 64)
	if err != nil {
		v.faultLocked(nil, "V4 lease %s: continuation %s", r.ID, position)
		return
	}
	for c := range v.waiting {
		if c.lsn <= lsn && in.Has(c.epk) {
			v.faultLocked(c, "V4 lease %s (epoch %s): position %d is after serial %d of key %s, LSN %d, not delivered",
				r.ID, l.Properties["epoch"], lsn, c.serial, c.key, c.lsn)
			delete(v.waiting, c)
		}
	}
}

// checkAhead checks V4 on what a lease records as done ahead of its position. Another product
// keeps the property, which then has no meaning. Called with mu.
func (v *verifier) checkAhead(l *lease, epoch int64) {
	owner := l.owner()
	text := l.Properties["ahead"]
	if text == "" || owner == "" || !strings.HasPrefix(l.Properties["signed"], owner+" ") || v.leases[l.ID].epoch != epoch {
		return
	}
	var ahead changefeed.Ahead
	if err := json.Unmarshal([]byte(text), &ahead); err != nil {
		v.faultLocked(nil, "V4 lease %s: ahead %s: %v", l.ID, text, err)
		return
	}
	for c := range v.waiting {
		if c.lsn > ahead.LSN || !l.FeedRange.Range.Has(c.epk) {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(strconv.Quote(c.key)))
		if !slices.ContainsFunc(ahead.Held, func(k changefeed.HeldKey) bool { return k.Key == h.Sum64() && k.LSN <= c.lsn }) && c.lsn > 0 {
			v.faultLocked(c, "V4 lease %s (epoch %d): ahead up to %d, and serial %d of key %s, LSN %d, is not delivered", l.ID, epoch, ahead.LSN, c.serial, c.key, c.lsn)
			delete(v.waiting, c)
		}
	}
}

// left returns the number of changes that are not delivered.
func (v *verifier) left() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.waiting)
}

// journal holds the events of a run, so that the report of a violation explains it. A
// failed run cannot be repeated at will, because the interleaving of goroutines does not
// follow from the seed. The verifier's mutex guards it.
type journal struct {
	began  time.Time
	events []event
}

// event concerns a key, or every key within a range.
type event struct {
	at   time.Duration
	key  string
	in   changefeed.FeedRange
	text string
	args []any
}

// maxEvents is the largest number of events in a report of a violation.
const maxEvents = 60

func (j *journal) note(key string, in changefeed.FeedRange, text string, args ...any) {
	j.events = append(j.events, event{at: time.Since(j.began), key: key, in: in, text: text, args: args})
}

// eventsOf returns the last events of a key, one a line.
func (j *journal) eventsOf(key, epk string) string {
	var lines []string
	for i := len(j.events) - 1; i >= 0 && len(lines) < maxEvents; i-- {
		e := &j.events[i]
		if e.key == key || e.key == "" && e.in.Has(epk) {
			lines = append(lines, fmt.Sprintf("\n\t\t%9.4fs  ", e.at.Seconds())+fmt.Sprintf(e.text, e.args...))
		}
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return b.String()
}
