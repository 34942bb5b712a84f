package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"feedbox/changefeed"
)

// A foreign host behaves like the .NET SDK's processor, as far as other hosts can see. It
// judges expiry by timestamps. It acquires a lease by writing its name into Owner, even a
// lease of a live owner that has too many. It renews by writing the timestamp and releases
// by Owner null. It keeps "properties" and drops unknown members of the document. Its
// defaults are .NET's.
const (
	foreignExpiry  = time.Minute
	foreignRenew   = 17 * time.Second
	foreignAcquire = 13 * time.Second
	foreignPoll    = 5 * time.Second
)

var errForeignLost = errors.New("simulation: the lease is another's")

// lease is a lease record in .NET's format.
type lease struct {
	ID                string            `json:"id"`
	Version           int               `json:"version"`
	LeaseToken        string            `json:"LeaseToken"`
	FeedRange         feedRange         `json:"FeedRange"`
	Owner             *string           `json:"Owner"`
	ContinuationToken *string           `json:"ContinuationToken"`
	Properties        map[string]string `json:"properties"`
	Timestamp         time.Time         `json:"timestamp"`
	Mode              string            `json:"Mode"`
}

type feedRange struct {
	Range changefeed.FeedRange `json:"Range"`
}

// owner returns "" if the lease is unowned.
func (l *lease) owner() string { return value(l.Owner) }

// position returns "" before the first checkpoint.
func (l *lease) position() string { return value(l.ContinuationToken) }

// epoch returns 0 if no host of this package has owned the lease.
func (l *lease) epoch() (int64, error) {
	return strconv.ParseInt(cmp.Or(l.Properties["epoch"], "0"), 10, 64)
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func decodeLease(r changefeed.Record) (lease, error) {
	var l lease
	err := json.Unmarshal(r.Body, &l)
	return l, err
}

// runForeignHosts makes a foreign host come and go until ctx ends.
func (s *sim) runForeignHosts(ctx context.Context) {
	rng := rand.New(rand.NewPCG(s.config.Seed, 6))
	for n := 1; s.config.Foreign; n++ {
		if wait(ctx, time.Duration(rng.IntN(20)+1)*time.Second) != nil {
			return
		}
		h := &host{sim: s, name: fmt.Sprintf("net%d", n), clock: newHostClock(1)}
		feed, store, err := s.backend.Connect(h.name)
		if err != nil {
			s.verifier.fault("connect %s: %v", h.name, err)
			return
		}
		f := &foreign{
			host: h, feed: &hostFeed{Feed: feed, host: h}, store: &hostStore{LeaseStore: store, host: h, h: s.history},
		}
		s.verifier.logEvent("%s joins", h.name)
		stay, end := context.WithTimeout(ctx, time.Duration(rng.IntN(60)+15)*time.Second)
		crash := rng.IntN(3) == 0
		if crash {
			context.AfterFunc(stay, func() { h.mu.Lock(); h.crashed = true; h.mu.Unlock() })
		}
		f.run(stay)
		end()
		s.verifier.logEvent("%s leaves, by a crash: %t", h.name, crash)
	}
}

type foreign struct {
	*host
	feed  changefeed.Feed
	store changefeed.LeaseStore
	group sync.WaitGroup

	working sync.Map // the ids of leases it works on
}

// run balances until ctx ends, and waits for the workers.
func (f *foreign) run(ctx context.Context) {
	for {
		f.balance(ctx)
		if wait(ctx, foreignAcquire) != nil {
			break
		}
	}
	f.group.Wait()
}

// balance acquires free and expired leases up to an equal share, else one lease of the host
// that has the most.
func (f *foreign) balance(ctx context.Context) {
	records, err := f.store.List(ctx, "")
	if err != nil {
		return
	}
	var free, all []lease
	counts := map[string]int{f.name: 0}
	for _, r := range records {
		l, err := decodeLease(r)
		if !strings.Contains(r.ID, "..") || err != nil {
			continue
		}
		all = append(all, l)
		if l.Owner == nil || time.Since(l.Timestamp) > foreignExpiry {
			free = append(free, l)
		} else {
			counts[*l.Owner]++
		}
	}
	target := max(1, (len(all)+len(counts)-1)/len(counts))
	need := target - counts[f.name]
	if need <= 0 {
		return
	}
	if len(free) == 0 {
		most := ""
		for name, n := range counts {
			if most == "" || n > counts[most] || n == counts[most] && name < most {
				most = name
			}
		}
		at := slices.IndexFunc(all, func(l lease) bool { return *l.Owner == most })
		if most == f.name || counts[most] <= target-min(1, need-1) {
			return
		}
		free, need = all[at:at+1], 1
	}
	for _, l := range free[:min(need, len(free))] {
		f.acquire(ctx, l)
	}
}

func (f *foreign) acquire(ctx context.Context, l lease) {
	if _, busy := f.working.Load(l.ID); busy {
		return
	}
	l, err := f.update(ctx, l, l.owner(), func(l *lease) { l.Owner = &f.name })
	if err != nil {
		return
	}
	f.sim.foreign.Add(1)
	f.working.Store(l.ID, true)
	f.group.Go(func() {
		f.work(ctx, l)
		f.working.Delete(l.ID)
	})
}

// work processes a lease until it is lost, something fails, or ctx ends.
func (f *foreign) work(ctx context.Context, l lease) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for wait(ctx, foreignRenew) == nil {
			if _, err := f.update(ctx, l, f.name, func(*lease) {}); errors.Is(err, errForeignLost) {
				end()
			}
		}
	})
	_ = f.process(ctx, l) // after any error .NET releases the lease and acquires one again
	end()
	renewing.Wait()
	_, _ = f.update(context.WithoutCancel(ctx), l, f.name, func(l *lease) { l.Owner = nil })
}

func (f *foreign) process(ctx context.Context, l lease) error {
	epoch, err := l.epoch()
	if err != nil {
		return err
	}
	for position := l.position(); ; {
		page, err := f.feed.Read(ctx, changefeed.ReadRequest{Range: l.FeedRange.Range, Continuation: position, MaxItems: 10})
		if err != nil {
			return err
		}
		for i := range page.Items {
			var doc struct{ Serial int }
			if err := json.Unmarshal(page.Items[i].Raw, &doc); err != nil {
				return err
			}
			if err := wait(ctx, f.sim.handlers.delay()); err != nil {
				return err
			}
			if err := f.gate(); err != nil {
				return err
			}
			f.sim.verifier.delivered(delivery{host: f.name, epoch: epoch, lease: l.LeaseToken, serial: doc.Serial, excused: true, beside: true})
		}
		if len(page.Items) > 0 {
			position = page.Continuation
			if _, err := f.update(ctx, l, f.name, func(l *lease) { l.ContinuationToken = &position }); err != nil {
				return err
			}
			continue
		}
		if err := wait(ctx, foreignPoll); err != nil {
			return err
		}
	}
}

// update reads the lease and writes it if its owner is from. It retries a conflict five
// times.
func (f *foreign) update(ctx context.Context, l lease, from string, edit func(*lease)) (lease, error) {
	for range 6 {
		r, err := f.store.Read(ctx, l.ID)
		if errors.Is(err, changefeed.ErrNotFound) {
			return l, errForeignLost
		}
		if err != nil {
			return l, err
		}
		if l, err = decodeLease(r); err != nil {
			return l, err
		}
		if l.owner() != from {
			return l, errForeignLost
		}
		edit(&l)
		l.Timestamp = time.Now().UTC()
		body, err := json.Marshal(l)
		if err != nil {
			return l, err
		}
		_, err = f.store.Replace(ctx, changefeed.Record{ID: l.ID, ETag: r.ETag, Body: body})
		if !errors.Is(err, changefeed.ErrETagMismatch) {
			return l, err
		}
	}
	return l, errForeignLost
}
