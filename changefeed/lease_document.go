package changefeed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"feedbox/changefeed/internal/jsonscan"
)

// The lease document is the one of the .NET SDK's processor (DocumentService-
// LeaseCore and DocumentServiceLeaseCoreEpk), member for member, so that its
// estimator and KEDA's scaler read it. Ours go into "properties", a map of
// strings .NET keeps but does not use.
type leaseDocument struct {
	ID                string            `json:"id"`
	Version           int               `json:"version"`
	LeaseToken        string            `json:"LeaseToken,omitempty"`
	FeedRange         *feedRangeJSON    `json:"FeedRange,omitempty"`
	Owner             *string           `json:"Owner"`
	ContinuationToken *string           `json:"ContinuationToken"`
	Properties        map[string]string `json:"properties"`
	Timestamp         string            `json:"timestamp,omitempty"`
	Mode              string            `json:"Mode,omitempty"`
}

type feedRangeJSON struct {
	Range FeedRange `json:"Range"`
}

// timestampFormat is .NET's round-trip format of a UTC time.
const timestampFormat = "2006-01-02T15:04:05.0000000Z07:00"

// Names of our members of "properties".
const (
	propEpoch       = "epoch"
	propMost        = "maxLeases"
	propIncarnation = "incarnation"
	propExpiry      = "expiry"
	propState       = "state"
	propParent      = "parent"
	propChildren    = "children"
	propHandoff     = "handoff"
	propPrevious    = "previousOwner"
	propSince       = "since"
	propLSN         = "lsn"
	propChangeTime  = "changeTime"
	propHealth      = "health"
	propFailures    = "failures"
	propError       = "lastError"
	propFailing     = "failingSince"
	propAttempts    = "attempts"
	propPaused      = "paused"
	propRelease     = "release"
	propRetry       = "retry"
	propRewind      = "rewind"
)

// maxErrorText bounds the error text kept in a lease.
const maxErrorText = 512

// encode renders the record to store.
func (l *Lease) encode() Record {
	p := properties{}
	for k, v := range l.properties {
		p[k] = v
	}
	p.integer(propEpoch, l.Epoch)
	p.integer(propMost, int64(l.Most))
	p.text(propIncarnation, l.Incarnation)
	p.integer(propExpiry, l.Expiry.Milliseconds())
	p.text(propState, string(l.State))
	p.text(propParent, l.Parent)
	p.text(propHandoff, string(l.Handoff))
	p.text(propPrevious, l.Previous)
	p.time(propSince, l.Since)
	p.integer(propLSN, l.LSN)
	p.integer(propChangeTime, l.ChangeTime)
	p.text(propHealth, string(l.Health))
	p.integer(propFailures, int64(l.Failures))
	p.text(propError, clip(l.Error, maxErrorText))
	p.time(propFailing, l.Failing)
	p.flag(propPaused, l.Request.Paused)
	p.flag(propRelease, l.Request.Release)
	p.flag(propRetry, l.Request.Retry)
	if len(l.Children) > 0 {
		p.json(propChildren, l.Children)
	}
	if len(l.Attempts) > 0 {
		p.json(propAttempts, l.Attempts)
	}
	if l.Request.Rewind != nil {
		p.json(propRewind, l.Request.Rewind)
	}

	doc := leaseDocument{
		ID: l.ID, Version: l.Version, LeaseToken: l.Token, Properties: p, Mode: l.Mode,
		Owner: optional(l.Owner), ContinuationToken: optional(l.Continuation),
	}
	if l.State == LeasePending || l.State == LeaseSplit || l.State == LeaseDone {
		doc.LeaseToken = "" // what has none is no lease to KEDA and the estimator
	}
	if l.Range != (FeedRange{}) {
		doc.FeedRange = &feedRangeJSON{Range: l.Range}
	}
	if !l.Timestamp.IsZero() {
		doc.Timestamp = l.Timestamp.UTC().Format(timestampFormat)
	}
	return Record{ID: l.ID, ETag: l.ETag, Body: merge(doc, l.unknown)}
}

// decodeLease reads a lease record. The error says why it cannot be continued.
func decodeLease(r Record) (Lease, error) {
	var doc leaseDocument
	if err := json.Unmarshal(r.Body, &doc); err != nil {
		return Lease{}, fmt.Errorf("not a lease document: %w", err)
	}
	p := properties(doc.Properties)
	if p == nil {
		p = properties{}
	}
	var d propertyDecoder
	l := Lease{
		ID: r.ID, ETag: r.ETag, Version: doc.Version, Token: doc.LeaseToken, Mode: doc.Mode,
		Owner: dereference(doc.Owner), Continuation: dereference(doc.ContinuationToken),
		Epoch: d.integer(p, propEpoch), Most: int(d.integer(p, propMost)), Incarnation: p[propIncarnation],
		Expiry: time.Duration(d.integer(p, propExpiry)) * time.Millisecond,
		State:  LeaseState(p[propState]), Parent: p[propParent],
		Handoff: hostKey(p[propHandoff]), Previous: p[propPrevious],
		Since: d.time(p, propSince), LSN: d.integer(p, propLSN), ChangeTime: d.integer(p, propChangeTime),
		Health: Health(p[propHealth]), Failures: int(d.integer(p, propFailures)),
		Error: p[propError], Failing: d.time(p, propFailing),
		Request: Request{
			Paused: p[propPaused] == "true", Release: p[propRelease] == "true", Retry: p[propRetry] == "true",
		},
	}
	d.json(p, propChildren, &l.Children)
	d.json(p, propAttempts, &l.Attempts)
	d.json(p, propRewind, &l.Request.Rewind)
	if doc.FeedRange != nil {
		l.Range = doc.FeedRange.Range
		if l.Range.Max == "" {
			l.Range.Max = maxKey
		}
	}
	if doc.Timestamp != "" {
		if t, err := time.Parse(time.RFC3339Nano, doc.Timestamp); err == nil {
			l.Timestamp = t
		} // written for others, read by nobody here
	}
	l.properties = p.unknown()
	l.unknown = unknownMembers(r.Body)
	if l.State != LeaseLive && l.Token == "" && l.Range != (FeedRange{}) {
		l.Token = l.Range.String()
	}
	return l, errors.Join(append(d.errs, l.check(doc))...)
}

// check says why this processor cannot continue a lease another product wrote.
func (l *Lease) check(doc leaseDocument) error {
	if strings.HasSuffix(l.ID, infoSuffix) {
		return nil
	}
	switch {
	case l.Version != 0 && l.Version != 1:
		return fmt.Errorf("document version %d is unknown; this processor reads 0 and 1", l.Version)
	case l.unknown["feedRange"] != nil: // as only Java spells it
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

// knownMembers are rebuilt on every write; all others are kept.
var knownMembers = map[string]bool{
	"id": true, "version": true, "LeaseToken": true, "FeedRange": true, "Owner": true,
	"ContinuationToken": true, "properties": true, "timestamp": true, "Mode": true,
}

func unknownMembers(body []byte) map[string]json.RawMessage {
	var unknown map[string]json.RawMessage
	c := jsonscan.NewCursor(body)
	for c.Object(); c.Member(); {
		name, value := string(c.Name()), c.Value()
		if knownMembers[name] || strings.HasPrefix(name, "_") { // _ is the store's
			continue
		}
		if unknown == nil {
			unknown = map[string]json.RawMessage{}
		}
		unknown[name] = bytes.Clone(value)
	}
	return unknown
}

// merge renders doc and adds the members it does not have.
func merge(doc any, more map[string]json.RawMessage) json.RawMessage {
	body, err := json.Marshal(doc)
	if err != nil {
		panic("changefeed: lease document: " + err.Error()) // strings, numbers and maps of strings always marshal
	}
	if len(more) == 0 {
		return body
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		panic("changefeed: lease document: " + err.Error())
	}
	for name, value := range more {
		if _, taken := all[name]; !taken {
			all[name] = value
		}
	}
	body, err = json.Marshal(all)
	if err != nil {
		panic("changefeed: lease document: " + err.Error()) // more came out of a decoder
	}
	return body
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func dereference(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// properties is the string map of a lease document; absent means zero.
type properties map[string]string

func (p properties) text(name, value string) {
	delete(p, name)
	if value != "" {
		p[name] = value
	}
}

func (p properties) integer(name string, value int64) {
	delete(p, name)
	if value != 0 {
		p[name] = strconv.FormatInt(value, 10)
	}
}

func (p properties) flag(name string, value bool) {
	delete(p, name)
	if value {
		p[name] = "true"
	}
}

func (p properties) time(name string, value time.Time) {
	delete(p, name)
	if !value.IsZero() {
		p[name] = value.UTC().Format(time.RFC3339Nano)
	}
}

func (p properties) json(name string, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic("changefeed: lease property " + name + ": " + err.Error()) // strings and numbers
	}
	p[name] = string(body)
}

// unknown returns the members this package did not write.
func (p properties) unknown() map[string]string {
	var rest map[string]string
	for name, value := range p {
		switch name {
		case propEpoch, propMost, propIncarnation, propExpiry, propState, propParent, propChildren, propHandoff,
			propPrevious, propSince, propLSN, propChangeTime, propHealth, propFailures, propError,
			propFailing, propAttempts, propPaused, propRelease, propRetry, propRewind:
		default:
			if rest == nil {
				rest = map[string]string{}
			}
			rest[name] = value
		}
	}
	return rest
}

// propertyDecoder collects what is wrong with our own members.
type propertyDecoder struct{ errs []error }

func (d *propertyDecoder) integer(p properties, name string) int64 {
	if p[name] == "" {
		return 0
	}
	n, err := strconv.ParseInt(p[name], 10, 64)
	if err != nil {
		d.errs = append(d.errs, fmt.Errorf("property %s: %w", name, err))
	}
	return n
}

func (d *propertyDecoder) time(p properties, name string) time.Time {
	if p[name] == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, p[name])
	if err != nil {
		d.errs = append(d.errs, fmt.Errorf("property %s: %w", name, err))
	}
	return t
}

func (d *propertyDecoder) json(p properties, name string, to any) {
	if p[name] == "" {
		return
	}
	if err := json.Unmarshal([]byte(p[name]), to); err != nil {
		d.errs = append(d.errs, fmt.Errorf("property %s: %w", name, err))
	}
}
