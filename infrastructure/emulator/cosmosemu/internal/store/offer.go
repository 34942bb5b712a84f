package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// Offer is the throughput of a database or container. Immutable.
type Offer struct {
	ID       string          `json:"id"` // also its resource id
	Resource string          `json:"resource"`
	RID      string          `json:"rid"` // of the resource
	ETag     string          `json:"etag"`
	Modified int64           `json:"modified"` // Unix ms
	Content  json.RawMessage `json:"content"`
}

// ModifiedAt is the time of the offer's last change.
func (o *Offer) ModifiedAt() time.Time { return time.UnixMilli(o.Modified) }

// PutOffer sets the throughput of the resource with the given rid and self link.
func (s *Store) PutOffer(resourceRID, resource string, content json.RawMessage) (*Offer, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	o := &Offer{
		ID: strings.ToLower(fmt.Sprintf("%04x", s.random.Uint32()&0xFFFFFF)), Resource: resource, RID: resourceRID,
		ETag: s.randomETag(), Modified: s.now().UnixMilli(), Content: content,
	}
	if old := s.OfferOf(resourceRID); old != nil {
		o.ID = old.ID
	}
	if err := s.put(offerKey(o.ID), o); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.offers[o.ID] = o
	s.mu.Unlock()
	return o, nil
}

// Offer returns an offer by id, or ErrNotFound.
func (s *Store) Offer(id string) (*Offer, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if o, ok := s.offers[strings.ToLower(id)]; ok {
		return o, nil
	}
	return nil, fmt.Errorf("offer %s: %w", id, ErrNotFound)
}

// OfferOf returns the offer of a resource, nil if it has none.
func (s *Store) OfferOf(resourceRID string) *Offer {
	for _, o := range s.Offers() {
		if o.RID == resourceRID {
			return o
		}
	}
	return nil
}

// Offers lists all offers by id.
func (s *Store) Offers() []*Offer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*Offer, 0, len(s.offers))
	for _, o := range s.offers {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *Offer) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// dropOffers adds the removal of the offers of the given resources to a batch. The caller
// holds turn.
func (s *Store) dropOffers(batch *pebble.Batch, resourceRIDs []string) error {
	for _, o := range s.Offers() {
		if !slices.Contains(resourceRIDs, o.RID) {
			continue
		}
		if err := batch.Delete(offerKey(o.ID), nil); err != nil {
			return fmt.Errorf("delete offer: %w", err)
		}
		s.mu.Lock()
		delete(s.offers, o.ID)
		s.mu.Unlock()
	}
	return nil
}

func (s *Store) loadOffer(value []byte) error {
	var o Offer
	if err := json.Unmarshal(value, &o); err != nil {
		return fmt.Errorf("%w: offer record: %w", disk.ErrDamaged, err)
	}
	s.offers[o.ID] = &o
	return nil
}

func offerKey(id string) []byte { return append([]byte{keyOffer}, id...) }
