package cosmos

import "testing"

func TestApplied(t *testing.T) {
	t.Parallel()
	const sent = `{"id":"i","a":"é","n":1,"ttl":60}`
	for name, test := range map[string]struct {
		verb         verb
		sent, stored string // nothing stored: it is gone
		want         bool
	}{
		"created, as it was sent":         {verbCreate, sent, sent, true},
		"replaced, as it was sent":        {verbReplace, sent, sent, true},
		"spaced and escaped by the store": {verbCreate, sent, `{ "n":1.0, "ttl":60, "a":"\u00e9", "id":"i" }`, true},
		"with what the store adds":        {verbCreate, sent, `{"id":"i","a":"é","n":1,"ttl":60,"_rid":"r","_self":"s","_etag":"e","_attachments":"x","_ts":7,"_lsn":8}`, true},
		"replaced, unchanged":             {verbReplace, `{"id":"i","_etag":"old","_ts":6}`, `{"id":"i","_etag":"new","_ts":7}`, true},
		"another value":                   {verbReplace, sent, `{"id":"i","a":"e","n":1,"ttl":60}`, false},
		"another lifetime":                {verbReplace, sent, `{"id":"i","a":"é","n":1,"ttl":61}`, false},
		"one member more":                 {verbReplace, sent, `{"id":"i","a":"é","n":1,"ttl":60,"_mine":1}`, false},
		"one member less":                 {verbReplace, sent, `{"id":"i","a":"é","n":1}`, false},
		"no object":                       {verbReplace, sent, `[]`, false},
		"created, gone":                   {verbCreate, sent, "", false},
		"replaced, gone":                  {verbReplace, sent, "", false},
		"deleted, gone":                   {verbDelete, "", "", true},
		"deleted, still there":            {verbDelete, "", sent, false},
		"deleted, an empty object there":  {verbDelete, "", `{}`, false},
	} {
		op := operation{verb: test.verb, body: []byte(test.sent)}
		if got := op.applied([]byte(test.stored), test.stored == ""); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
