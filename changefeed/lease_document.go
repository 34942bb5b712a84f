package changefeed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

// The lease document is that of the .NET SDK's processor (DocumentServiceLeaseCore and
// DocumentServiceLeaseCoreEpk), member for member, so that its estimator and KEDA's scaler
// can read it. Our own fields are in "properties", a map of strings that .NET keeps but
// does not use.
type leaseDocument struct {
	ID                string            `json:"id"`
	Version           int               `json:"version"`
	LeaseToken        string            `json:"LeaseToken,omitempty"`
	FeedRange         *feedRangeJSON    `json:"FeedRange,omitempty"`
	Owner             nullable          `json:"Owner"`
	ContinuationToken nullable          `json:"ContinuationToken"`
	Properties        map[string]string `json:"properties"`
	Timestamp         string            `json:"timestamp,omitempty"`
	Mode              string            `json:"Mode,omitempty"`
}

type feedRangeJSON struct {
	Range FeedRange `json:"Range"`
}

// beginning is the ContinuationToken of a lease without a position. It exists because
// without a token .NET would begin at the position of its own options, and Java would treat
// the lease as its own and rewrite it; Java cannot read this token. Cosmos DB counts
// changes from 1, so for .NET it is the position before the first change. In a feed it may
// be a real position, so propUnread distinguishes the two.
const beginning = `"0"`

// propUnread is the property of a record whose position did not come from the feed.
const propUnread = "unread"

// propScope is the property of the info record with the scope of the leases. It is absent
// for the whole key space.
const propScope = "scope"

// propPurpose is the property of the info record with Options.Purpose. It is absent if that is empty.
const propPurpose = "purpose"

// Purpose returns Options.Purpose of the processor that made the record of the first leases, whose id ends
// with ".info". It is empty if the record has none or cannot be read.
func (r Record) Purpose() string {
	info, err := decodeLease(r)
	if err != nil {
		return ""
	}
	return info.properties[propPurpose]
}

// nullable is encoded as null if empty, as .NET does.
type nullable string

func (s nullable) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// timestampFormat is .NET's round-trip format of a UTC time.
const timestampFormat = "2006-01-02T15:04:05.0000000Z07:00"

// propSigned is the member of "properties" that proves that this package wrote the record
// last. The other members are in ownProperties.
const propSigned = "signed"

// maxErrorText bounds the error text kept in a lease.
const maxErrorText = 512

// signature returns the value of propSigned. Another product changes Owner or timestamp and
// keeps the old signature, which then does not match.
func signature(owner, timestamp string) string { return owner + " " + timestamp }

func (l *Lease) encode() Record {
	p := maps.Clone(l.properties)
	if p == nil {
		p = map[string]string{}
	}
	if l.Ahead.LSN != 0 || len(l.Ahead.Held) > 0 {
		l.Ahead.Position = l.positionHash()
	}
	for _, own := range l.ownProperties() {
		if text := own.text(); text != "" {
			p[own.name] = text
		}
	}
	l.Ahead.Position = 0
	doc := leaseDocument{
		ID: l.ID, Version: l.Version, LeaseToken: l.Token, Properties: p, Mode: l.Mode,
		Owner: nullable(l.Owner), ContinuationToken: nullable(l.Continuation),
	}
	if l.State == LeasePending || l.State == LeaseSplit || l.State == LeaseDone {
		doc.LeaseToken = "" // KEDA and the estimator ignore records without a token
	}
	if l.Range != (FeedRange{}) {
		doc.FeedRange = &feedRangeJSON{Range: l.Range}
		if l.Continuation == "" {
			doc.ContinuationToken, p[propUnread] = beginning, "true"
		}
	}
	if !l.Timestamp.IsZero() {
		doc.Timestamp = l.Timestamp.UTC().Format(timestampFormat)
	}
	if !l.foreign {
		p[propSigned] = signature(l.Owner, doc.Timestamp)
	}
	body := mustMarshal(doc)
	if len(l.unknown) > 0 {
		all := maps.Clone(l.unknown)
		_ = json.Unmarshal(body, &all) // it was marshalled above
		body = mustMarshal(all)
	}
	return Record{ID: l.ID, ETag: l.ETag, Body: body}
}

// decodeLease reads a lease record. Its error is the reason why the lease cannot be
// continued.
func decodeLease(r Record) (Lease, error) {
	var doc leaseDocument
	unknown, err := doc.decode(r.Body)
	if err != nil {
		return Lease{}, fmt.Errorf("not a lease document: %w", err)
	}
	l := Lease{
		ID: r.ID, ETag: r.ETag, loaded: r.Term, unknown: unknown, Version: doc.Version, Token: doc.LeaseToken, Mode: doc.Mode,
		Owner: string(doc.Owner), Continuation: string(doc.ContinuationToken),
	}
	var errs []error
	p := doc.Properties
	if l.Continuation == beginning && p[propUnread] != "" {
		l.Continuation = ""
	}
	delete(p, propUnread)
	for _, own := range l.ownProperties() {
		if text := p[own.name]; text != "" {
			if err := own.parse(text); err != nil {
				errs = append(errs, fmt.Errorf("property %s: %w", own.name, err))
			}
		}
		delete(p, own.name)
	}
	if l.Ahead.Position != l.positionHash() {
		l.Ahead = Ahead{}
	}
	l.Ahead.Position = 0
	delete(p, "attempts") // of an earlier version
	if doc.FeedRange != nil {
		l.Range = doc.FeedRange.Range
		l.Range.Max = cmp.Or(l.Range.Max, maxKey)
	}
	l.Timestamp, _ = time.Parse(time.RFC3339Nano, doc.Timestamp) // zero if invalid: it is informational only
	if signed := p[propSigned]; signed != "" && signed != signature(l.Owner, doc.Timestamp) {
		l.foreign, l.takenOver = true, !strings.HasPrefix(signed, signature("", ""))
		l.Incarnation, l.Handoff = "", ""
		if l.Owner != "" {
			l.Expiry = 0
		}
		l.LSN, l.ChangeTime, l.LastRead = 0, 0, time.Time{} // of our last checkpoint, not of theirs
		l.Health, l.Failures, l.Error, l.Failing = Healthy, 0, "", time.Time{}
		l.UnreadFor = 0
	}
	if !l.foreign { // an operator's write keeps the signature
		delete(p, propSigned)
	}
	if len(p) > 0 {
		l.properties = p
	}
	l.Token = cmp.Or(l.Token, l.Range.String()) // the record of a lease that is not live has no token
	return l, errors.Join(append(errs, l.check(doc))...)
}

// DecodeLeases returns the leases among records, of every processor. It omits those that are done,
// and records of other kinds, such as heartbeats.
func DecodeLeases(records []Record) (leases []Lease, err error) {
	for _, r := range records {
		var doc leaseDocument
		if err := json.Unmarshal(r.Body, &doc); err == nil && doc.FeedRange == nil {
			continue
		}
		l, err := decodeLease(r)
		if err != nil {
			return nil, fmt.Errorf("lease %s: %w: %w", r.ID, errUnreadable, err)
		}
		if l.State != LeaseDone {
			leases = append(leases, l)
		}
	}
	return leases, nil
}

// errUnreadable marks a record that cannot be continued.
var errUnreadable = errors.New("lease record cannot be continued")

// readLease reads one lease. An existing record that cannot be continued is an error marked
// errUnreadable.
func readLease(ctx context.Context, store LeaseStore, id string) (Lease, error) {
	record, err := store.Read(ctx, id)
	if err != nil {
		return Lease{}, fmt.Errorf("read lease %s: %w", id, err)
	}
	l, err := decodeLease(record)
	if err != nil {
		return Lease{}, fmt.Errorf("lease %s: %w: %w", id, errUnreadable, err)
	}
	return l, nil
}

// replace stores the record in place of the one with its ETag, and sets the new ETag.
func (l *Lease) replace(ctx context.Context, store LeaseStore) (err error) {
	l.ETag, err = store.Replace(ctx, l.encode())
	return err
}

// check returns the reason why this processor cannot continue a lease of another product.
func (l *Lease) check(doc leaseDocument) error {
	if strings.HasSuffix(l.ID, infoSuffix) {
		return nil
	}
	switch {
	case l.Version != 0 && l.Version != 1:
		return fmt.Errorf("document version %d is unknown; this processor reads 0 and 1", l.Version)
	case l.unknown["feedRange"] != nil: // the spelling of Java's processor
		return errors.New("written by the Java processor, whose continuations are not interchangeable")
	case doc.FeedRange == nil:
		return errors.New("it has no FeedRange; start the .NET processor once, which adds it, or delete the lease")
	case l.Mode != "" && l.Mode != modeIncremental:
		return fmt.Errorf("mode %q is not supported; this processor reads the latest-version feed", l.Mode)
	case l.Continuation != "" && !strings.HasPrefix(l.Continuation, `"`):
		return fmt.Errorf("continuation %q is not a quoted ETag", clip(l.Continuation, 40))
	}
	return l.Range.validate()
}

const modeIncremental = "Incremental Feed"

// mustMarshal marshals values that cannot fail: strings, numbers, and decoded values.
func mustMarshal(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		panic("changefeed: record: " + err.Error())
	}
	return body
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
