package changefeed

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

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
		{"health", &l.Health},
		{"failures", &l.Failures},
		{"lastError", &l.Error},
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
