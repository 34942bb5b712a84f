package changefeed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Host is a host that tells of itself beside its leases: one that owns none yet, one that
// is due none, or one that is about to leave. A host that owns leases and stays has no
// record of its own; its leases name it.
type Host struct {
	Name, Incarnation string
	Draining          bool // it is about to release its leases
	Spare             bool // there is no lease for it
	Timestamp         time.Time
	Expiry            time.Duration
}

// Hosts lists them by name. Records of hosts that were killed stay for some time.
func (o *Operator) Hosts(ctx context.Context) ([]Host, error) {
	ids, err := o.ids(ctx)
	if err != nil {
		return nil, err
	}
	records, err := o.store.List(ctx, ids.prefix+hostInfix)
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	var hosts []Host
	for _, r := range records {
		var h heartbeat
		if err := json.Unmarshal(r.Body, &h); err != nil {
			continue // another version's; it says nothing that is understood
		}
		at, _ := time.Parse(timestampFormat, h.Timestamp) // zero if it is no time
		hosts = append(hosts, Host{
			Name: h.Host, Incarnation: h.Incarnation, Draining: h.Draining, Spare: h.Spare,
			Timestamp: at, Expiry: time.Duration(h.ExpiryMS) * time.Millisecond,
		})
	}
	slices.SortFunc(hosts, func(a, b Host) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	return hosts, nil
}
