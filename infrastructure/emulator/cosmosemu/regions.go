package cosmosemu

import (
	"slices"
	"sync"
)

// regions are the states of the account's regions by their numbers in Options.Regions. They are
// not kept on disk: a restart begins with the state of Options.Regions.
type regions struct {
	mu         sync.Mutex // guards the fields below
	real       regionState
	advertised regionState // in the account, until AdvertiseRegions
}

type regionState struct {
	write   int // the region that accepts writes, unless all do
	removed []bool
}

func (r *regions) init(n int) {
	r.real.removed, r.advertised.removed = make([]bool, n), make([]bool, n)
}

// state reports whether a region is removed and whether it accepts writes.
func (r *regions) state(region int, allWrite bool) (removed, writes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.real.removed[region], allWrite || region == r.real.write
}

// listed returns the regions that the account advertises: first the one that accepts writes,
// because the SDKs read there if they have no preference.
func (r *regions) listed(allWrite bool) (read, write []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	read = []int{r.advertised.write}
	for i, removed := range r.advertised.removed {
		if !removed && i != r.advertised.write {
			read = append(read, i)
		}
	}
	if allWrite {
		return read, read
	}
	return read, read[:1]
}

func (r *regions) failOver(region int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.real.removed[region] {
		return refuse(400, "the region was removed")
	}
	r.real.write = region
	return nil
}

func (r *regions) remove(region int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if region == r.real.write {
		return refuse(400, "it accepts the writes: fail over to another region first")
	}
	r.real.removed[region] = true
	return nil
}

func (r *regions) advertise() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advertised = regionState{r.real.write, slices.Clone(r.real.removed)}
}
