package cosmosinbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/internal/limit"
)

// Inbox is a consumer.Inbox in a container. It is safe for concurrent use.
type Inbox struct {
	container *azcosmos.ContainerClient
	consumer  string
	ttl       int
	timeout   time.Duration

	mu    sync.Mutex // guards known
	known map[string]stored
}

var _ consumer.Inbox = (*Inbox)(nil)

// Options are the options of New. Zero means the default.
type Options struct {
	// TTL is how long a key's mark is kept after its last event. It should exceed the time within
	// which an event may be redelivered. Default 30 days; negative: no expiry.
	TTL time.Duration
	// Timeout bounds the requests of an operation, with the retries of the client. Default 15 s. The
	// first request of a client may take 5 s longer, because azcosmos reads the properties of the
	// account without the caller's deadline; 60 s longer without the options of the package comment.
	Timeout time.Duration
}

// stored is a mark with the ETag of its document.
type stored struct {
	mark consumer.Mark
	etag azcore.ETag
}

// knownLimit bounds the cache of ETags. A missing entry costs one read.
const knownLimit = 10_000

// document is the stored form of a mark.
type document struct {
	ID               string `json:"id"`
	PartitionKey     string `json:"partitionKey"`
	Type             string `json:"type"`
	Sequence         int64  `json:"sequence"`
	AggregateVersion int64  `json:"aggregateVersion"`
	EventID          string `json:"eventId"`
	Recent           string `json:"recent,omitempty"`
	Parking          string `json:"parking,omitempty"`
	TTL              int    `json:"ttl"`
}

// New returns the inbox of the named consumer. The name is the id of its marks, so it must not contain
// slashes, backslashes, ?, #, quotes or control characters. The partition key path of container must be
// /partitionKey. Options.TTL only works if the container has time to live enabled (-1, or a default).
func New(container *azcosmos.ContainerClient, consumer string, opts *Options) (*Inbox, error) {
	if container == nil || consumer == "" {
		return nil, errors.New("cosmos inbox: container and consumer are required")
	}
	if strings.ContainsFunc(consumer, func(r rune) bool { return r < ' ' || strings.ContainsRune(`/\?#"`, r) }) {
		return nil, fmt.Errorf(`cosmos inbox: the consumer %q cannot be the id of its marks: use a name without / \ ? # " and control characters`, consumer)
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	ttl := -1
	if o.TTL = cmp.Or(o.TTL, 30*24*time.Hour); o.TTL > 0 {
		ttl = max(1, int(o.TTL/time.Second))
	}
	return &Inbox{container: container, consumer: consumer, ttl: ttl, timeout: o.Timeout, known: make(map[string]stored)}, nil
}

// Last implements consumer.Inbox. It asks the primary replica, see read. Should another one answer that has
// not received the last write of this process, Last returns the mark written by this process.
func (b *Inbox) Last(ctx context.Context, key string) (consumer.Mark, error) {
	ctx, l := limit.Start(ctx, b.timeout)
	own, ok := b.recall(key)
	s, err := b.read(ctx, key)
	if err = l.End(err); err != nil {
		return consumer.Mark{}, fmt.Errorf("read the inbox of key %s: %w", key, err)
	}
	// A mark without a sequence supersedes every other one, so only marks of one event are compared.
	sameEvent := own.mark.Sequence == s.mark.Sequence && own.mark.EventID == s.mark.EventID
	parking := sameEvent && own.mark.Parking != s.mark.Parking && own.mark.Supersedes(s.mark)
	newer := ok && s.etag != "" && (own.mark.Sequence > s.mark.Sequence || parking)
	if newer && consumer.Judge(own.mark, &consumer.Event{ID: s.mark.EventID, Sequence: s.mark.Sequence}) != consumer.Fork {
		b.remember(key, own)
		return own.mark, nil
	}
	return s.mark, nil
}

// read returns the latest mark of key, or the zero value if there is none. It uses a batch, because the
// primary replica executes batches, even those that only read. Another replica may not have received a mark
// yet that the owner of the key before has written, and its event would be handled again.
func (b *Inbox) read(ctx context.Context, key string) (stored, error) {
	batch := b.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key))
	batch.ReadItem(b.consumer, nil)
	reply, err := b.container.ExecuteTransactionalBatch(ctx, batch, nil)
	if err != nil {
		return stored{}, err
	}
	if len(reply.OperationResults) != 1 {
		return stored{}, fmt.Errorf("%d results of one read", len(reply.OperationResults))
	}
	result := reply.OperationResults[0]
	switch {
	case result.StatusCode == http.StatusNotFound:
		b.remember(key, stored{})
		return stored{}, nil
	case !reply.Success:
		return stored{}, fmt.Errorf("the store answers with status %d", result.StatusCode)
	}
	var d document
	if err := json.Unmarshal(result.ResourceBody, &d); err != nil {
		return stored{}, err
	}
	s := stored{d.mark(), result.ETag}
	b.remember(key, s)
	return s, nil
}

// Record implements consumer.Inbox.
func (b *Inbox) Record(ctx context.Context, key string, m consumer.Mark) error {
	ctx, l := limit.Start(ctx, b.timeout)
	return l.End(b.record(ctx, key, m))
}

func (b *Inbox) record(ctx context.Context, key string, m consumer.Mark) error {
	s, ok := b.recall(key)
	for {
		var err error
		if !ok {
			if s, err = b.read(ctx, key); err != nil {
				return fmt.Errorf("read the inbox of key %s: %w", key, err)
			}
		}
		if m == s.mark || !m.Supersedes(s.mark) {
			return nil
		}
		err = b.write(ctx, key, m, s.etag)
		code := status(err)
		switch {
		case err == nil:
			return nil
		case code == http.StatusConflict, code == http.StatusPreconditionFailed, code == http.StatusNotFound && s.etag != "":
			ok = false // written by another process, or expired: read it again
		default:
			return fmt.Errorf("write the inbox of key %s: %w", key, err)
		}
	}
}

// write replaces the mark that has etag by m. If etag is empty, it creates the mark.
func (b *Inbox) write(ctx context.Context, key string, m consumer.Mark, etag azcore.ETag) error {
	body, err := b.encode(b.consumer, key, m)
	if err != nil {
		return err
	}
	var reply azcosmos.ItemResponse
	partition := azcosmos.NewPartitionKeyString(key)
	if etag == "" {
		reply, err = b.container.CreateItem(ctx, partition, body, nil)
	} else {
		reply, err = b.container.ReplaceItem(ctx, partition, b.consumer, body, &azcosmos.ItemOptions{IfMatchEtag: &etag})
	}
	if err == nil {
		m.Replaces = ""
		b.remember(key, stored{m, reply.ETag})
	}
	return err
}

func (b *Inbox) encode(id, key string, m consumer.Mark) ([]byte, error) {
	return json.Marshal(document{
		ID: id, PartitionKey: key, Type: "inbox", Sequence: m.Sequence, AggregateVersion: m.AggregateVersion, EventID: m.EventID, Recent: m.Recent, Parking: m.Parking, TTL: b.ttl,
	})
}

func (d *document) mark() consumer.Mark {
	return consumer.Mark{Sequence: d.Sequence, AggregateVersion: d.AggregateVersion, EventID: d.EventID, Recent: d.Recent, Parking: d.Parking}
}

func (b *Inbox) forget(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, key)
}

func (b *Inbox) recall(key string) (stored, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.known[key]
	return s, ok
}

func (b *Inbox) remember(key string, s stored) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= knownLimit {
		clear(b.known)
	}
	b.known[key] = s
}

// status returns the HTTP status of the response in err, or 0 if there is none.
func status(err error) int {
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return reply.StatusCode
	}
	return 0
}
