package postgres

import "time"

// holding is a horizon with the time since when it has not moved, while there were
// transactions ahead of it.
type holding struct {
	horizon uint64
	since   time.Time // zero: nothing waits
}

// watch remembers since when the horizon has not moved.
func (f *Feed) watch(horizon, ahead uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case ahead == horizon:
		f.held.since = time.Time{}
	case horizon > f.held.horizon, f.held.since.IsZero():
		f.held.since = time.Now()
	}
	f.held.horizon = max(f.held.horizon, horizon)
}

// Held is how long a transaction that is still open has kept the feed from going on, as far
// as reads have seen; 0 if none does. All that was committed after it began waits for it.
func (f *Feed) Held() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held.since.IsZero() {
		return 0
	}
	return time.Since(f.held.since)
}
