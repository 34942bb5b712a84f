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

// Save implements recordstore.Store. The commit is one request with all writes, each under its
// condition. What refuses it and has expired is replaced.
func (r Rows) Save(ctx context.Context, c *recordstore.Change) error {
	for there := (tags{aggregate: c.Read.Tag}); ; {
		writes, err := r.writes(c, there)
		if err != nil {
			return err
		}
		tag, err := r.DB.commit(ctx, writes...)
		if !refused(err) {
			c.Tag = tag
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

// tags are those of the aggregate and of the note that a change replaces; "": there is none.
type tags struct{ aggregate, note string }

// expired are the tags of what a change may replace, as it is now. The error is what refuses the
// change: it has not expired, or is not as it was read.
func (r Rows) expired(ctx context.Context, c *recordstore.Change) (t tags, err error) {
	aggregate, note, _, err := r.stored(ctx, c)
	if err != nil {
		return t, err
	}
	t = tags{tagOf(aggregate), tagOf(note)}
	switch {
	case c.Read.Version > 0 && (!live(aggregate) || t.aggregate != c.Read.Tag):
		return t, recordstore.ErrChanged
	case c.Read.Version == 0 && aggregate != nil && (live(aggregate) || number(aggregate, "version") >= c.Version):
		return t, recordstore.ErrExists
	case live(note):
		return t, recordstore.ErrNoted
	}
	return t, nil
}

// stored reads what there is of a change: the aggregate, the note, and the first event; nil is
// none.
func (r Rows) stored(ctx context.Context, c *recordstore.Change) (aggregate, note, event *pb.Document, err error) {
	names := [3]string{r.DB.document(collectionAggregates, c.ID.String())}
	if c.Request != nil {
		names[1] = r.DB.document(collectionRequests, requestID(c.ID, c.Request.ID))
	}
	if len(c.Events) > 0 {
		names[2] = r.DB.document(collectionEvents, c.Events[0].ID)
	}
	found, err := r.DB.get(ctx, names[:]...)
	return found[0], found[1], found[2], asFault("look for a change", err)
}

// writes are those of a change, the aggregate's first.
func (r Rows) writes(c *recordstore.Change, there tags) ([]*pb.Write, error) {
	id := c.ID.String()
	var writes []*pb.Write
	if c.Unchanged {
		writes = append(writes, r.DB.patch(collectionAggregates, id, nil, still(there.aggregate)))
	} else {
		f := fields{"type": c.Type, "version": c.Version, "sequence": c.Sequence, "data": string(c.Data)}
		if c.Deleted {
			f.expires(c.DeletedTTL)
		} else {
			f["listed"] = c.Type
		}
		writes = append(writes, r.DB.put(collectionAggregates, id, f, still(there.aggregate)))
		if c.Deleted && c.Recurs {
			writes = append(writes, r.DB.put(collectionTombstones, id, fields{"version": c.Version, "sequence": c.Sequence}, always))
		}
	}
	for _, e := range c.Events {
		writes = append(writes, r.DB.event(id, e.ID, e.Document, c.EventTTL))
	}
	if a := c.Audit; a != nil {
		f := fields{"aggregate": id, "version": a.Version, "time": a.At, "principal": a.Principal, "events": recordstore.EncodeAudited(a.Events)}.expires(c.AuditTTL)
		writes = append(writes, r.DB.put(collectionAudits, auditID(c.ID, a.Version), f, absent))
	}
	if q := c.Request; q != nil {
		f := fields{"hash": q.Hash, "command": q.CommandID.String(), "created": q.CreatedAt, "version": q.Version}.expires(c.RequestTTL)
		writes = append(writes, r.DB.put(collectionRequests, requestID(q.AggregateID, q.ID), f, still(there.note)))
	}
	return writes, fits(writes)
}

// fits refuses what is more than one commit of Firestore takes.
func fits(writes []*pb.Write) error {
	whole := 0
	for _, w := range writes {
		size := proto.Size(w)
		if whole += size; size > maxDocument {
			name := w.GetUpdate().GetName()
			return fault.New(fault.TooLarge, "", fmt.Sprintf("a document would have %d bytes, and Firestore takes %d (%s): make it smaller", size, maxDocument, name[strings.Index(name, "/documents/")+1:]))
		}
	}
	switch {
	case len(writes) > maxWrites:
		return fault.New(fault.TooLarge, "", fmt.Sprintf("the commit has %d writes, and Firestore takes %d: record fewer events at a time", len(writes), maxWrites))
	case whole > maxCommit:
		return fault.New(fault.TooLarge, "", fmt.Sprintf("the commit has %d bytes, and Firestore takes %d: record less at a time", whole, maxCommit))
	}
	return nil
}

// Saved implements recordstore.Store.
func (r Rows) Saved(ctx context.Context, c *recordstore.Change) (own, current bool, err error) {
	aggregate, note, event, err := r.stored(ctx, c)
	if err != nil {
		return false, false, err
	}
	own = event != nil || note != nil && text(note, "command") == c.Request.CommandID.String()
	if aggregate != nil && number(aggregate, "version") == c.Version {
		current, c.Tag = true, tagOf(aggregate)
	}
	return own, current, nil
}
