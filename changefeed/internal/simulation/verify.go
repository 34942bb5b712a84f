package simulation

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"feedbox/changefeed"
)

// maxFaults keeps a broken run's report readable.
const maxFaults = 20

// verifier holds what must be true of every run, whatever went wrong in it.
type verifier struct {
	mu       sync.Mutex // guards what follows
	changes  []*change  // by serial
	waiting  map[*change]bool
	latest   map[string]*change // by key and id
	last     map[string]int     // highest serial first delivered, by key
	epochs   map[string]int64   // highest epoch that delivered, by key
	holders  map[string]string  // who delivered with it
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
	delivered bool
}

// delivery is one document a handler sent.
type delivery struct {
	host, lease string
	epoch       int64
	key         string
	serial      int
	excused     bool // the host was stopped between its last look and sending
}

func newVerifier() *verifier {
	return &verifier{
		waiting: map[*change]bool{}, latest: map[string]*change{},
		last: map[string]int{}, epochs: map[string]int64{}, holders: map[string]string{},
	}
}

func (v *verifier) fault(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faultLocked(format, args...)
}

func (v *verifier) faultLocked(format string, args ...any) {
	if len(v.faults) < maxFaults {
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	}
}

// written notes a change. It must be called before anybody can read it.
func (v *verifier) written(key, id, epk string) *change {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &change{key: key, id: id, epk: epk, serial: len(v.changes)}
	v.changes = append(v.changes, c)
	return c
}

// committed notes its LSN; the version before it need not be delivered any more.
func (v *verifier) committed(c *change, lsn int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	name := c.key + "/" + c.id
	delete(v.waiting, v.latest[name])
	v.latest[name] = c
	c.lsn = lsn
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
		v.faultLocked("V1 %s delivered serial %d, which nobody wrote", d.host, d.serial)
		return
	}
	if d.epoch < v.epochs[d.key] {
		if d.excused {
			v.zombies++
		} else {
			v.faultLocked("V3 key %s: %s delivers serial %d with epoch %d of %s after %s did with epoch %d",
				d.key, d.host, d.serial, d.epoch, d.lease, v.holders[d.key], v.epochs[d.key])
		}
	} else {
		v.epochs[d.key], v.holders[d.key] = d.epoch, d.host
	}
	c := v.changes[d.serial]
	delete(v.waiting, c)
	if c.delivered {
		v.repeated++
		return
	}
	c.delivered = true
	if last, some := v.last[d.key]; some && d.serial < last {
		v.faultLocked("V2 key %s: %s first delivers serial %d after %d", d.key, d.host, d.serial, last)
	}
	v.last[d.key] = max(v.last[d.key], d.serial)
}

// stored checks V4 on a lease as it is written.
func (v *verifier) stored(r changefeed.Record) {
	if !strings.Contains(r.ID, "..") {
		return
	}
	var lease struct {
		ContinuationToken string
		FeedRange         struct{ Range changefeed.FeedRange }
		Properties        map[string]string
	}
	if err := json.Unmarshal(r.Body, &lease); err != nil {
		v.fault("V4 lease %s: %v", r.ID, err)
		return
	}
	if lease.ContinuationToken == "" {
		return
	}
	lsn, err := strconv.ParseInt(strings.Trim(lease.ContinuationToken, `"`), 10, 64)
	if err != nil {
		v.fault("V4 lease %s: continuation %s", r.ID, lease.ContinuationToken)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.waiting {
		if c.lsn <= lsn && lease.FeedRange.Range.Has(c.epk) {
			v.faultLocked("V4 lease %s (epoch %s): position %d is behind serial %d of key %s, LSN %d, not delivered",
				r.ID, lease.Properties["epoch"], lsn, c.serial, c.key, c.lsn)
			delete(v.waiting, c)
		}
	}
}

// left is how many changes wait to be delivered.
func (v *verifier) left() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.waiting)
}
