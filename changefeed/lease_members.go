package changefeed

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"feedbox/changefeed/internal/jsonscan"
)

// decode reads a document. unknown are the members that this package does not know.
func (d *leaseDocument) decode(body []byte) (unknown map[string]json.RawMessage, err error) {
	if d.scan(body) {
		return nil, nil
	}
	*d = leaseDocument{}
	if err := json.Unmarshal(body, d); err != nil {
		return nil, err
	}
	return unknownMembers(body), nil
}

// knownMembers are rebuilt on every write. All others are kept.
var knownMembers = map[string]bool{
	"id": true, "version": true, "LeaseToken": true, "FeedRange": true, "Owner": true,
	"ContinuationToken": true, "properties": true, "timestamp": true, "Mode": true,
}

func unknownMembers(body []byte) (unknown map[string]json.RawMessage) {
	_ = json.Unmarshal(body, &unknown) // it was decoded before
	maps.DeleteFunc(unknown, func(name string, _ json.RawMessage) bool {
		return knownMembers[name] || strings.HasPrefix(name, "_") // names with _ are the store's
	})
	if len(unknown) == 0 {
		return nil
	}
	return unknown
}

// scan reads a document as this package writes it, in a sixth of the time that encoding/json takes, because every host
// decodes every lease in each listing. It returns false if the document has another shape or a member that it does
// not know. Then the document is decoded with encoding/json.
func (d *leaseDocument) scan(body []byte) bool {
	c := jsonscan.NewCursor(body)
	usual := c.Object()
	for usual && c.Member() {
		switch name := c.Name(); string(name) {
		case "id":
			_, usual = jsonscan.Unquote(c.Value())
		case "version":
			usual = json.Unmarshal(c.Value(), &d.Version) == nil
		case "LeaseToken":
			usual = scanText(c.Value(), &d.LeaseToken)
		case "FeedRange":
			usual = d.scanRange(&c)
		case "Owner":
			usual = scanText(c.Value(), (*string)(&d.Owner))
		case "ContinuationToken":
			usual = scanText(c.Value(), (*string)(&d.ContinuationToken))
		case "properties":
			usual = d.scanProperties(&c)
		case "timestamp":
			usual = scanText(c.Value(), &d.Timestamp)
		case "Mode":
			usual = scanText(c.Value(), &d.Mode)
		default:
			usual = bytes.HasPrefix(name, []byte("_")) && c.Value() != nil
		}
	}
	return usual && !c.Failed() && len(bytes.TrimSpace(body[c.Pos():])) == 0
}

func (d *leaseDocument) scanRange(c *jsonscan.Cursor) bool {
	d.FeedRange = &feedRangeJSON{}
	usual := c.Object() && c.Member() && string(c.Name()) == "Range" && c.Object()
	for usual && c.Member() {
		switch string(c.Name()) {
		case "min":
			usual = scanText(c.Value(), &d.FeedRange.Range.Min)
		case "max":
			usual = scanText(c.Value(), &d.FeedRange.Range.Max)
		default:
			usual = false
		}
	}
	return usual && !c.Member()
}

func (d *leaseDocument) scanProperties(c *jsonscan.Cursor) bool {
	if d.Properties == nil {
		d.Properties = map[string]string{}
	}
	usual := c.Object()
	for usual && c.Member() {
		name, known := propertyNames[string(c.Name())]
		var text string
		if usual = known && scanText(c.Value(), &text); usual {
			d.Properties[name] = text
		}
	}
	return usual
}

// propertyNames has the properties of this package; reading one of them allocates no name.
var propertyNames = func() map[string]string {
	names := map[string]string{propSigned: propSigned, propUnread: propUnread, propScope: propScope, propPurpose: propPurpose}
	for _, own := range (&Lease{}).ownProperties() {
		names[own.name] = own.name
	}
	return names
}()

// scanText reads a string. As in encoding/json, null changes nothing.
func scanText(value []byte, to *string) bool {
	switch text, plain := jsonscan.Unquote(value); {
	case string(value) == "null":
		return true
	case plain && utf8.Valid(text):
		*to = string(text)
		return true
	default:
		return json.Unmarshal(value, to) == nil
	}
}

// property is a member of "properties". Its text is JSON, except that strings and times are
// unquoted and durations are in milliseconds. Zero values are omitted.
type property struct {
	name string
	at   any // a pointer into the lease
}

func (l *Lease) ownProperties() []property {
	return []property{
		{"epoch", &l.Epoch},
		{"history", &l.History},
		{"incarnation", &l.Incarnation},
		{"expiry", &l.Expiry},
		{"state", &l.State},
		{"parent", &l.Parent},
		{"children", &l.Children},
		{"handoff", &l.Handoff},
		{"previousOwner", &l.Previous},
		{"since", &l.Since},
		{"lsn", &l.LSN},
		{"changeTime", &l.ChangeTime},
		{"reached", &l.Reached},
		{"term", &l.Term},
		{"lost", &l.Lost},
		{"delivered", &l.Delivered},
		{"handled", &l.Handled},
		{"lastRead", &l.LastRead},
		{"backlog", &l.Backlog},
		{"health", &l.Health},
		{"failures", &l.Failures},
		{"lastError", &l.Error},
		{"unreadFor", &l.UnreadFor},
		{"failingSince", &l.Failing},
		{"ahead", &l.Ahead},
		{"paused", &l.Request.Paused},
		{"release", &l.Request.Release},
		{"retry", &l.Request.Retry},
		{"rewind", &l.Request.Rewind},
		{"newHistory", &l.Request.History},
	}
}

// text returns the encoded value, or "" for the zero value.
func (p property) text() string {
	v := reflect.ValueOf(p.at).Elem()
	switch at := p.at.(type) {
	case *time.Time:
		if !at.IsZero() {
			return at.UTC().Format(time.RFC3339Nano)
		}
		return ""
	case *time.Duration:
		v = reflect.ValueOf(at.Milliseconds())
	}
	switch {
	case v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0:
		return ""
	case v.Kind() == reflect.String:
		return v.String()
	}
	return string(mustMarshal(v.Interface()))
}

func (p property) parse(text string) (err error) {
	switch at := p.at.(type) {
	case *time.Time:
		*at, err = time.Parse(time.RFC3339Nano, text)
		return err
	case *time.Duration:
		ms, err := strconv.ParseInt(text, 10, 64)
		*at = time.Duration(ms) * time.Millisecond
		return err
	case *int64:
		*at, err = strconv.ParseInt(text, 10, 64)
		return err
	case *bool:
		*at = text == "true"
		return nil
	}
	if v := reflect.ValueOf(p.at).Elem(); v.Kind() == reflect.String {
		v.SetString(text)
		return nil
	}
	return json.Unmarshal([]byte(text), p.at)
}
