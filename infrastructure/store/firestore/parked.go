package firestore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"feedbox/application/relay"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/recordstore/parked"
)

// Parked is the parked.Records of a database. Each gate and each parked event is a document. It is
// safe for concurrent use.
type Parked struct {
	DB    *DB
	gates string // the collection; "" means collectionGates
}

// ParkedOf returns the parked events of a consumer, for the option Park of a consumer kit. Its gates are
// apart from those of the relay. Its parked events share a collection, and its index: no key of an event
// may begin with "consumer/".
func ParkedOf(db *DB, consumer string) (parked.Store, error) {
	return parked.OfConsumer(consumer, Parked{DB: db, gates: collectionConsumerGates})
}

func (p Parked) gatesIn() string { return cmp.Or(p.gates, collectionGates) }

// hashed returns the id of the document of a gate, or of a parked event: a hash, because keys and
// event ids may contain characters that a document id must not have.
func hashed(key, event string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(key), key, event))
	return hex.EncodeToString(sum[:])
}

func gateOf(d *pb.Document) (parked.Gate, error) {
	return parked.Gate{Key: text(d, "key"), Version: tagOf(d), Data: []byte(text(d, "gate"))}, nil
}

func parkedFields(e *relay.ParkedEvent) fields {
	return fields{
		"key": e.Key, "event": e.ID, "position": e.Position, "action": document.Brief(e.Action), "document": document.Compress(e.Document), "lsn": e.LSN, "sequence": e.Sequence,
		"reason": document.Text(e.Reason), "error": document.Brief(e.Error), "attempts": int64(e.Attempts), "parked": e.ParkedAt,
	}
}

func parkedOf(d *pb.Document) (relay.ParkedEvent, error) {
	raw, err := document.Decompress(d.Fields["document"].GetBytesValue())
	return relay.ParkedEvent{
		ID: text(d, "event"), Key: text(d, "key"), Action: text(d, "action"), Document: raw, LSN: number(d, "lsn"), Sequence: number(d, "sequence"),
		Reason: text(d, "reason"), Error: text(d, "error"), Attempts: int(number(d, "attempts")), ParkedAt: moment(d, "parked"), Position: number(d, "position"),
	}, err
}

func skippedOf(d *pb.Document) (relay.Skipped, error) {
	e, wrong := parkedOf(d)
	var wanted document.IntentData
	err := json.Unmarshal([]byte(text(d, "intent")), &wanted)
	return relay.Skipped{Event: e, Intent: relay.Intent(wanted)}, errors.Join(wrong, err)
}

// Find implements parked.Records.
func (p Parked) Find(ctx context.Context, key string, ids []string) (g parked.Gate, events []relay.ParkedEvent, err error) {
	names := []string{p.DB.document(p.gatesIn(), hashed(key, ""))}
	for _, id := range ids {
		names = append(names, p.DB.document(collectionParked, hashed(key, id)))
	}
	found, err := p.DB.get(ctx, names...)
	if err != nil || found[0] == nil {
		return g, nil, asFault("read the gate of key "+key, err)
	}
	for _, d := range found[1:] {
		if d != nil {
			e, wrong := parkedOf(d)
			events, err = append(events, e), errors.Join(err, wrong)
		}
	}
	g, _ = gateOf(found[0])
	return g, events, err
}

// Gates implements parked.Records.
func (p Parked) Gates(ctx context.Context, wanted bool) ([]parked.Gate, error) {
	var conditions []condition
	if wanted {
		conditions = append(conditions, condition{"wanted", equal, true})
	}
	return all(ctx, p.DB, "list gates", find(p.gatesIn(), byName, 0, conditions...), gateOf)
}

// First implements parked.Records. It stops the stream of results at maxBytes.
func (p Parked) First(ctx context.Context, key string, limit, maxBytes int) (events []relay.ParkedEvent, err error) {
	var wrong error
	what := "read parked events of key " + key
	err = p.DB.scan(ctx, find(collectionParked, "position", limit, condition{"line", equal, key}), time.Time{}, func(d *pb.Document) bool {
		var e relay.ParkedEvent
		e, wrong = parkedOf(d)
		events = append(events, e)
		maxBytes -= len(e.Document)
		return wrong == nil && maxBytes > 0
	})
	if wrong != nil {
		return nil, fmt.Errorf("%s: decode: %w", what, wrong)
	}
	return events, asFault(what, err)
}

// Skipped implements parked.Records.
func (p Parked) Skipped(ctx context.Context, key string) ([]relay.Skipped, error) {
	skipped, err := all(ctx, p.DB, "read skipped events of key "+key, find(collectionSkipped, byName, 0, condition{"key", equal, key}), skippedOf)
	slices.SortFunc(skipped, func(a, b relay.Skipped) int { return cmp.Compare(a.Event.Position, b.Event.Position) })
	return skipped, err
}

// SkippedAmong implements parked.Records. It reads one document for each event, found or not.
func (p Parked) SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error) {
	skipped, names := map[relay.EventRef]bool{}, make([]string, len(events))
	if len(events) == 0 { // the service refuses a request for no document
		return skipped, nil
	}
	for i, e := range events {
		names[i] = p.DB.document(collectionSkipped, hashed(e.Key, e.ID))
	}
	found, err := p.DB.get(ctx, names...)
	for i, d := range found {
		if d != nil {
			skipped[events[i]] = true
		}
	}
	return skipped, asFault("find skipped events", err)
}

// Commit implements parked.Records.
func (p Parked) Commit(ctx context.Context, c *parked.Change) (version string, err error) {
	key, id, when := c.Gate.Key, hashed(c.Gate.Key, ""), unchanged(c.Gate.Version)
	writes := []*pb.Write{p.DB.remove(p.gatesIn(), id, when)}
	if !c.Open {
		writes[0] = p.DB.put(p.gatesIn(), id, fields{"key": key, "gate": string(c.Gate.Data), "wanted": c.Wanted}.unique(), when)
	}
	put := func(e *relay.ParkedEvent, when *pb.Precondition) {
		f := parkedFields(e)
		f["line"] = key // indexed together with the position
		writes = append(writes, p.DB.put(collectionParked, hashed(key, e.ID), f, when))
	}
	for i := range c.Put {
		put(&c.Put[i], absent)
	}
	if c.Replace != nil {
		put(c.Replace, always)
	}
	for _, id := range c.Remove {
		writes = append(writes, p.DB.remove(collectionParked, hashed(key, id), always))
	}
	if s := c.Skipped; s != nil {
		intent, err := json.Marshal(document.IntentData(s.Intent))
		if err != nil {
			return "", fmt.Errorf("encode the intent of a skipped event of key %s: %w", key, err)
		}
		f := parkedFields(&s.Event)
		f["intent"] = string(intent)
		writes = append(writes, p.DB.put(collectionSkipped, hashed(key, s.Event.ID), f, always))
	}
	version, err = p.DB.commit(ctx, writes...)
	if refused(err) {
		return "", fmt.Errorf("%w: %w", parked.ErrChanged, err)
	}
	return version, asFault("change the gate of key "+key, err)
}
