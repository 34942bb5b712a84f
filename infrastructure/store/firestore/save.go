package firestore

import (
	"context"
	"fmt"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/proto"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/recordstore"
)

// Limits of Firestore.
const (
	maxWrites   = 500
	maxCommit   = 10 << 20
	maxDocument = 1 << 20
)

// Save implements recordstore.Store. The commit is one request with all writes and their
// conditions. If expired documents refuse it, they are replaced by a second one.
func (r Records) Save(ctx context.Context, c *recordstore.Change) error {
	for there := (tags{aggregate: c.Before.Tag}); ; {
		writes, err := r.writes(c, there)
		if err != nil {
			return err
		}
		tag, err := r.DB.commit(ctx, writes...)
		if !refused(err) {
			c.After.Tag = tag
			return asFault("commit", err)
		}
		expired, reason := r.expired(ctx, c)
		if reason == nil && expired == there {
			reason = recordstore.ErrExists // an event, or the audit entry
		}
		if reason != nil {
			return fmt.Errorf("%w: %w", reason, err)
		}
		there = expired
	}
}

// tags are the tags of the aggregate and of the note that a change replaces; "": there is none.
type tags struct{ aggregate, note string }

// expired returns the current tags of the documents that a change may replace. The error is the
// reason to refuse the change: a document has not expired or was changed after it was read.
func (r Records) expired(ctx context.Context, c *recordstore.Change) (t tags, err error) {
	aggregate, note, _, err := r.stored(ctx, c)
	if err != nil {
		return t, err
	}
	t = tags{tagOf(aggregate), tagOf(note)}
	switch {
	case c.Before.Version > 0 && (!live(aggregate) || t.aggregate != c.Before.Tag):
		return t, recordstore.ErrChanged
	case c.Before.Version == 0 && aggregate != nil && (live(aggregate) || number(aggregate, "version") >= c.After.Version):
		return t, recordstore.ErrExists
	case live(note):
		return t, recordstore.ErrNoted
	}
	return t, nil
}

// stored reads the documents of a change: the aggregate, the note and the first event; nil if
// there is none.
func (r Records) stored(ctx context.Context, c *recordstore.Change) (aggregate, note, event *pb.Document, err error) {
	names := [3]string{r.DB.document(collectionAggregates, c.ID.String())}
	if c.Request != nil {
		names[1] = r.DB.document(collectionRequests, requestID(c.ID, c.Request.ID))
	}
	if len(c.Events) > 0 {
		names[2] = r.DB.document(collectionEvents, c.Events[0].ID)
	}
	found, err := r.DB.get(ctx, names[:]...)
	return found[0], found[1], found[2], asFault("read back a change", err)
}

// writes returns the writes of a change, that of the aggregate first.
func (r Records) writes(c *recordstore.Change, there tags) ([]*pb.Write, error) {
	id := c.ID.String()
	var writes []*pb.Write
	if c.Unchanged {
		writes = append(writes, r.DB.patch(collectionAggregates, id, nil, unchanged(there.aggregate)))
	} else {
		f := fields{"type": c.Type, "version": c.After.Version, "sequence": c.Commit.Sequence, "data": string(c.Data)}
		if c.Deleted {
			f.expires(c.DeletedTTL)
		} else {
			f["listed"] = c.Type
		}
		writes = append(writes, r.DB.put(collectionAggregates, id, f, unchanged(there.aggregate)))
		if c.Deleted && c.Recurs {
			writes = append(writes, r.DB.put(collectionTombstones, id, fields{"version": c.After.Version, "sequence": c.Commit.Sequence}, always))
		}
	}
	for _, e := range c.Events {
		writes = append(writes, r.DB.event(id, e.ID, recordstore.EventDocument(e), c.EventTTL))
	}
	if a := c.Audit; a != nil {
		f := fields{"aggregate": id, "version": a.Version, "time": a.At, "principal": a.Principal, "events": recordstore.EncodeAudited(a.Events)}.expires(c.AuditTTL)
		writes = append(writes, r.DB.put(collectionAudits, auditID(c.ID, a.Version), f, absent))
	}
	if q := c.Request; q != nil {
		f := fields{"hash": q.Hash, "command": q.CommandID.String(), "created": q.CreatedAt, "version": q.Version}.expires(c.RequestTTL)
		writes = append(writes, r.DB.put(collectionRequests, requestID(q.AggregateID, q.ID), f, unchanged(there.note)))
	}
	return writes, fits(writes)
}

// fits refuses writes that exceed the limits of a commit.
func fits(writes []*pb.Write) error {
	whole := 0
	for _, w := range writes {
		size := proto.Size(w)
		if whole += size; size > maxDocument {
			name := w.GetUpdate().GetName()
			return fault.New(fault.TooLarge, "", fmt.Sprintf("a document would have %d bytes, and Firestore allows %d (%s): make it smaller", size, maxDocument, name[strings.Index(name, "/documents/")+1:]))
		}
	}
	switch {
	case len(writes) > maxWrites:
		return fault.New(fault.TooLarge, "", fmt.Sprintf("the commit has %d writes, and Firestore allows %d: record fewer events at a time", len(writes), maxWrites))
	case whole > maxCommit:
		return fault.New(fault.TooLarge, "", fmt.Sprintf("the commit has %d bytes, and Firestore allows %d: record less at a time", whole, maxCommit))
	}
	return nil
}

// Saved implements recordstore.Store.
func (r Records) Saved(ctx context.Context, c *recordstore.Change) (own, current bool, err error) {
	aggregate, note, event, err := r.stored(ctx, c)
	if err != nil {
		return false, false, err
	}
	own = event != nil || note != nil && text(note, "command") == c.Request.CommandID.String()
	if aggregate != nil && number(aggregate, "version") == c.After.Version {
		current, c.After.Tag = true, tagOf(aggregate)
	}
	return own, current, nil
}
