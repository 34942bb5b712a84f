package changefeed

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLeaseDocumentMatchesDotNet(t *testing.T) {
	l := Lease{
		ID: "feedboxacc.documents.azure.com_AbcdEA==_AbcdEKx1-yk=..-1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", Version: 1,
		Token: "-1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", Range: rng("", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"), Mode: modeIncremental,
		Owner: "relay-1", Incarnation: "00ff", Epoch: 7, Expiry: 20 * time.Second, Continuation: `"1234"`, LSN: 1230, ChangeTime: 1700000000,
		Timestamp: time.Date(2026, 11, 21, 10, 20, 30, 123456700, time.UTC),
	}
	want := `{"id":"feedboxacc.documents.azure.com_AbcdEA==_AbcdEKx1-yk=..-1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF","version":1,` +
		`"LeaseToken":"-1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF","FeedRange":{"Range":{"min":"","max":"1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}},` +
		`"Owner":"relay-1","ContinuationToken":"\"1234\"","properties":{"changeTime":"1700000000","epoch":"7","expiry":"20000","incarnation":"00ff","lsn":"1230","signed":"relay-1 2026-11-21T10:20:30.1234567Z"},` +
		`"timestamp":"2026-11-21T10:20:30.1234567Z","Mode":"Incremental Feed"}`
	if got := string(l.encode().Body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Fields are null where .NET writes null. Only a range has a position.
func TestMissingFieldsAreNullOrAbsent(t *testing.T) {
	for want, l := range map[string]Lease{
		`{"id":"p.info","version":1,"Owner":null,"ContinuationToken":null,"properties":{"signed":" ","state":"split"}}`: {ID: "p.info", Version: 1, State: LeaseSplit},
		`{"id":"p..-FF","version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":null,` +
			`"ContinuationToken":"\"0\"","properties":{"signed":" ","unread":"true"}}`: {
			ID: "p..-FF", Version: 1, Token: "-FF", Range: FullRange(), Children: []RangeToken{},
		},
	} {
		if got := string(l.encode().Body); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestUnreadPositionIsEmptyUntilItMoves(t *testing.T) {
	for _, c := range []struct{ position, properties, want string }{
		{`"0"`, `{"unread":"true"}`, ""},
		{`"57"`, `{"unread":"true"}`, `"57"`},
		{`"0"`, `{}`, `"0"`},
	} {
		l, err := decodeLease(Record{ID: "p..x", Body: fmt.Appendf(nil,
			`{"version":1,"FeedRange":{"Range":{"min":"","max":"FF"}},"ContinuationToken":%q,"properties":%s}`, c.position, c.properties)})
		if err != nil || l.Continuation != c.want || l.properties != nil {
			t.Errorf("position %s with %s: read from %q, properties %v, error %v", c.position, c.properties, l.Continuation, l.properties, err)
		}
	}
}

// Another product changes Owner, position and timestamp. The other fields then describe the
// previous owner.
func TestForeignWriteInvalidatesOwnProperties(t *testing.T) {
	ours := ownedLease()
	ours.Continuation, ours.LSN, ours.ChangeTime, ours.Delivered, ours.Handled = `"5"`, 5, 50, 6, 7
	ours.Handoff, ours.Health, ours.Failures, ours.Error, ours.Failing = "b/2", Retrying, 3, "bad", time.Unix(9, 0).UTC()
	ours.UnreadFor, ours.Timestamp, ours.Request.Paused = time.Minute, time.Unix(100, 0).UTC(), true
	ours.LastRead = time.Unix(90, 0).UTC()
	for _, owner := range []string{"net", ""} {
		var doc leaseDocument
		if err := json.Unmarshal(ours.encode().Body, &doc); err != nil {
			t.Fatal(err)
		}
		doc.Owner, doc.ContinuationToken, doc.Timestamp = nullable(owner), `"9"`, time.Unix(200, 0).UTC().Format(timestampFormat)
		got, err := decodeLease(Record{ID: ours.ID, ETag: "theirs", Body: mustMarshal(doc)})
		want := Lease{
			ID: ours.ID, ETag: "theirs", Version: 1, Token: "-FF", Range: FullRange(), Mode: modeIncremental, Owner: owner, Epoch: 2,
			Continuation: `"9"`, Delivered: 6, Handled: 7, Timestamp: time.Unix(200, 0).UTC(), Request: Request{Paused: true},
			foreign: true, takenOver: true, properties: map[string]string{propSigned: "a 1970-01-01T00:01:40.0000000Z"},
		}
		if owner == "" {
			want.Expiry = ours.Expiry // of the former owner, which may not know
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("owner %q, error %v\ngot  %+v\nwant %+v", owner, err, got, want)
		}
	}
}

func TestClipKeepsValidText(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"ab€", 3, "ab"}, {"", 3, ""}} {
		if got := clip(c.text, c.n); got != c.want {
			t.Errorf("%q cut to %d is %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestLeaseDocumentRoundTrip(t *testing.T) {
	l := Lease{
		ID: "p..-FF", ETag: `"e"`, Version: 1, Token: "-FF", Range: FullRange(), Mode: modeIncremental, Owner: "a", Incarnation: "i", Epoch: 3,
		Expiry: time.Second, Since: time.Unix(1700000000, 0).UTC(), LSN: 5, ChangeTime: 6, Timestamp: time.Unix(1700000001, 0).UTC(),
		Parent: "p.info", Children: []RangeToken{{Range: rng("", "1F"), Continuation: `"9"`}}, Handoff: "b/j", Previous: "c",
		Health: Retrying, Failures: 4, Error: "boom <&>", Failing: time.Unix(1700000002, 0).UTC(), UnreadFor: time.Minute,
		LastRead: time.Unix(1700000003, 0).UTC(), Backlog: true,
		Ahead:   Ahead{LSN: 9, Held: []HeldKey{{Key: 1 << 63, LSN: 6, ID: "x", Refusals: 2}}},
		Request: Request{Paused: true, Release: true, Retry: true, Rewind: &RangeToken{Range: FullRange(), Continuation: `"2"`}},
	}
	got, err := decodeLease(l.encode())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, l) {
		t.Errorf("got  %+v\nwant %+v", got, l)
	}
}

func TestLeaseDocumentKeepsUnknownMembers(t *testing.T) {
	for _, future := range []string{``, `,"future":{"a":[1]}`} {
		for _, theirs := range []string{`{}`, `{"theirs":"kept"}`} {
			body := `{"id":"p..-FF","version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":null,
				"ContinuationToken":null,"properties":` + theirs + future + `,"_etag":"\"1\"","_ts":1,"_rid":"x"}`
			l, err := decodeLease(Record{ID: "p..-FF", ETag: `"1"`, Body: json.RawMessage(body)})
			if err != nil {
				t.Fatal(err)
			}
			l.Epoch = 1
			again := string(l.encode().Body)
			for _, want := range []string{strings.Trim(future, ","), strings.Trim(theirs, "{}"), `"epoch":"1"`} {
				if !strings.Contains(again, want) {
					t.Errorf("%s is not in %s", want, again)
				}
			}
			if strings.Contains(again, `"_ts"`) {
				t.Errorf("system members are written back: %s", again)
			}
		}
	}
}

func TestLeaseIsContinuedOrRefused(t *testing.T) {
	for _, tt := range []struct{ name, body, refused string }{
		{"version 1", `{"version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"ContinuationToken":"\"5\"","Mode":"Incremental Feed"}`, ""},
		{"version 0 with FeedRange", `{"version":0,"LeaseToken":"0","FeedRange":{"Range":{"min":"","max":"1F"}},"ContinuationToken":"\"5\""}`, ""},
		{"no version is 0", `{"LeaseToken":"0","FeedRange":{"Range":{"min":"","max":"1F"}},"ContinuationToken":"\"5\"","Owner":"x"}`, ""},
		{"empty max", `{"version":1,"LeaseToken":"-","FeedRange":{"Range":{"min":"","max":""}}}`, ""},
		{"version 0 without FeedRange", `{"LeaseToken":"0","ContinuationToken":"\"5\""}`, "no FeedRange"},
		{"Java", `{"version":1,"LeaseToken":"-FF","feedRange":{"Range":{"min":"","max":"FF"}},"ContinuationToken":"eyJWIjoxfQ=="}`, "Java"},
		{"Java token in a FeedRange lease", `{"version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"ContinuationToken":"eyJWIjoxfQ=="}`, "not a quoted ETag"},
		{"all versions and deletes", `{"version":1,"FeedRange":{"Range":{"min":"","max":"FF"}},"Mode":"Full-Fidelity Feed"}`, "mode"},
		{"unknown version", `{"version":2,"FeedRange":{"Range":{"min":"","max":"FF"}}}`, "version 2"},
		{"bounds out of order", `{"version":1,"FeedRange":{"Range":{"min":"20","max":"10"}}}`, "below"},
		{"bounds not hexadecimal", `{"version":1,"FeedRange":{"Range":{"min":"g","max":"FF"}}}`, "hexadecimal"},
		{"not JSON", `{`, "not a lease document"},
		{"broken time", `{"version":1,"FeedRange":{"Range":{"min":"","max":"FF"}},"properties":{"since":"yesterday"}}`, "since"},
		{"broken duration", `{"version":1,"FeedRange":{"Range":{"min":"","max":"FF"}},"properties":{"expiry":"20s"}}`, "expiry"},
		{"broken property", `{"version":1,"FeedRange":{"Range":{"min":"","max":"FF"}},"properties":{"epoch":"x"}}`, "epoch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := decodeLease(Record{ID: "p..x", Body: json.RawMessage(tt.body)})
			switch {
			case tt.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
				t.Errorf("error %v, want one about %q", err, tt.refused)
			}
		})
	}
}

// KEDA's scaler and .NET's estimator ignore records without a LeaseToken.
func TestOnlyLiveLeasesHaveALeaseToken(t *testing.T) {
	for _, state := range []LeaseState{LeaseLive, LeasePending, LeaseSplit, LeaseDone} {
		l := liveLease("", "FF")
		l.State, l.Token = state, "-FF"
		if has := strings.Contains(string(l.encode().Body), "LeaseToken"); has != (state == LeaseLive) {
			t.Errorf("state %q: LeaseToken present: %t", state, has)
		}
		if again, err := decodeLease(l.encode()); err != nil || again.Token != "-FF" {
			t.Errorf("state %q: to this package its token is %q, error %v", state, again.Token, err)
		}
	}
}

func FuzzDecodeLease(f *testing.F) {
	l := liveLease("", "FF")
	l.Ahead = Ahead{LSN: 3, Held: []HeldKey{{Key: 1, LSN: 1, ID: "a", Refusals: 2}}}
	f.Add(string(l.encode().Body))
	f.Add(`{"version":0,"FeedRange":{"Range":{"min":"","max":"1F"}},"properties":{"rewind":"{}"}}`)
	f.Add(`{"id":"p..x","version":1,"LeaseToken":"a\u0041","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":null,"ContinuationToken":"\"5\"","properties":{"epoch":"7","signed":"x"},"timestamp":"t","_ts":5}`)
	f.Fuzz(func(t *testing.T, body string) {
		var scanned, decoded leaseDocument
		if json.Valid([]byte(body)) && scanned.scan([]byte(body)) {
			if err := json.Unmarshal([]byte(body), &decoded); err != nil || unknownMembers([]byte(body)) != nil {
				t.Fatalf("scanned, but encoding/json returns the error %v and the unknown members %v", err, unknownMembers([]byte(body)))
			}
			if scanned.ID = decoded.ID; len(scanned.Properties) == 0 {
				scanned.Properties = decoded.Properties
			}
			if !reflect.DeepEqual(scanned, decoded) {
				t.Fatalf("scanned %+v\ndecoded %+v", scanned, decoded)
			}
		}
		l, err := decodeLease(Record{ID: "p..x", Body: json.RawMessage(body)})
		if err != nil {
			return
		}
		again, err := decodeLease(l.encode())
		if err != nil {
			t.Fatalf("its own encoding is refused: %v", err)
		}
		if string(again.encode().Body) != string(l.encode().Body) {
			t.Fatalf("not stable:\n%s\n%s", l.encode().Body, again.encode().Body)
		}
	})
}

// Only the position shows the progress of another product's processor.
func TestForeignWriteClearsLSNAndExpiry(t *testing.T) {
	l := Lease{ID: "p..-FF", Version: 1, Range: FullRange(), Owner: "a", Incarnation: "i", Epoch: 3, Expiry: time.Second, Continuation: `"5"`, LSN: 5, ChangeTime: 6, Timestamp: time.Unix(1, 0)}
	var doc map[string]any
	if err := json.Unmarshal(l.encode().Body, &doc); err != nil {
		t.Fatal(err)
	}
	doc["Owner"], doc["ContinuationToken"] = "dotnet", `"900"`
	got, err := decodeLease(Record{ID: l.ID, Body: mustMarshal(doc)})
	if err != nil || got.Continuation != `"900"` || got.LSN != 0 || got.ChangeTime != 0 || got.Expiry != 0 {
		t.Errorf("%+v, %v; want the position and no numbers", got, err)
	}
}

func TestLeaseTakenByForeignHostWaitsForFormerOwnersExpiry(t *testing.T) {
	l := Lease{ID: "p..-FF", Version: 1, Range: FullRange(), Owner: "a", Incarnation: "i", Epoch: 3, Expiry: time.Hour, Timestamp: time.Unix(1, 0)}
	var doc map[string]any
	if err := json.Unmarshal(l.encode().Body, &doc); err != nil {
		t.Fatal(err)
	}
	doc["Owner"] = nil
	got, err := decodeLease(Record{ID: l.ID, Body: mustMarshal(doc)})
	if lifetime := got.lifetime(20 * time.Second); err != nil || lifetime != time.Hour {
		t.Errorf("%+v lives for %s, error %v; want an hour", got, lifetime, err)
	}
}

// The feed is empty. Without a record of the loss, the range would be read on once it has new changes, and the
// first of them would be skipped.
func TestLossOfAllChangesIsRecorded(t *testing.T) {
	var l Lease
	l.lose(&AheadError{Position: 9, Lost: true})
	if e := l.ahead(9); l.Lost == 0 || e.Foreign || !e.Lost {
		t.Errorf("recorded %d, lost %t, foreign %t; want a loss", l.Lost, e.Lost, e.Foreign)
	}
}

func TestChildInheritsProgressAndRequests(t *testing.T) {
	parent := Lease{
		ID: "p", Epoch: 4, History: "h", LSN: 7, ChangeTime: 70, Reached: 12, Lost: 10, Ahead: Ahead{LSN: 9, Held: []HeldKey{{LSN: 8, ID: "a", Refusals: 2}}},
		Request: Request{Paused: true, Release: true, Rewind: &RangeToken{Range: FullRange(), Continuation: `"3"`, Since: time.Unix(30, 0)}, History: "i"},
	}
	r := FeedRange{Min: "", Max: "20"}
	now := time.Unix(100, 0)
	want := Lease{
		ID: "p..-20", Version: 1, Token: "-20", Range: r, Mode: modeIncremental, State: LeasePending, Parent: "p", Epoch: 4,
		History: "h", Continuation: `"7"`, Since: time.Unix(60, 0), LSN: 7, ChangeTime: 70, Reached: 12, Lost: 10, Ahead: parent.Ahead, Timestamp: now,
		Request: Request{Paused: true, Rewind: &RangeToken{Range: r, Continuation: `"3"`, Since: time.Unix(30, 0)}, History: "i"},
	}
	if got := parent.child(RangeToken{Range: r, Continuation: `"7"`, Since: time.Unix(60, 0)}, "p..-20", now); !reflect.DeepEqual(got, want) {
		t.Errorf("child %+v\nwant  %+v", got, want)
	}
}

func TestRequestsAreComparedByContent(t *testing.T) {
	to := func(continuation string, since int64) *RangeToken {
		return &RangeToken{Continuation: continuation, Since: time.Unix(since, 0)}
	}
	for name, c := range map[string]struct {
		a, b Request
		want bool
	}{
		"nothing":             {Request{}, Request{}, true},
		"a pause":             {Request{Paused: true}, Request{}, false},
		"the same pause":      {Request{Paused: true}, Request{Paused: true}, true},
		"a rewind":            {Request{}, Request{Rewind: to(`"1"`, 0)}, false},
		"its end":             {Request{Rewind: to(`"1"`, 0)}, Request{}, false},
		"the same rewind":     {Request{Rewind: to(`"1"`, 5)}, Request{Rewind: to(`"1"`, 5)}, true},
		"to another position": {Request{Rewind: to(`"1"`, 5)}, Request{Rewind: to(`"2"`, 5)}, false},
		"to another time":     {Request{Rewind: to("", 5)}, Request{Rewind: to("", 6)}, false},
		"a rewind and a try":  {Request{Rewind: to(`"1"`, 5), Retry: true}, Request{Rewind: to(`"1"`, 5)}, false},
	} {
		if got := c.a.equal(c.b); got != c.want {
			t.Errorf("%s: the same %t, want %t", name, got, c.want)
		}
	}
}

func TestSplitPassesStartTimeToChildren(t *testing.T) {
	since := time.Unix(5, 0)
	l := Lease{Range: FullRange(), Since: since, Owner: "a", Incarnation: "1", Epoch: 2}
	l.replaceBy([]FeedRange{{Max: "20"}, {Min: "20", Max: maxKey}})
	if len(l.Children) != 2 || !l.Children[0].Since.Equal(since) || !l.Children[1].Since.Equal(since) || l.Owner != "" || l.State != LeaseSplit {
		t.Errorf("split %+v", l)
	}
}

func TestLifetime(t *testing.T) {
	for name, c := range map[string]struct {
		lease Lease
		want  time.Duration
	}{
		"unowned":                            {Lease{Expiry: time.Hour}, 0},
		"with the observer's expiry":         {Lease{Owner: "a", Expiry: 20 * time.Second}, 20 * time.Second},
		"with a longer one":                  {Lease{Owner: "a", Expiry: time.Hour}, time.Hour},
		"with a shorter one":                 {Lease{Owner: "a", Expiry: time.Second}, 20 * time.Second},
		"of another product":                 {Lease{Owner: "net"}, time.Minute},
		"taken from our host, then released": {Lease{takenOver: true, Expiry: time.Hour}, time.Hour},
	} {
		if got := c.lease.lifetime(20 * time.Second); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// usualLease returns a lease of a busy range as Azure Cosmos DB lists it.
func usualLease(n int) Record {
	r := rng(fmt.Sprintf("%032X", n<<16), fmt.Sprintf("%032X", (n+1)<<16))
	l := Lease{
		ID: "account.documents.azure.com_db_c.." + r.String(), Version: 1, Token: r.String(), Range: r, Mode: modeIncremental,
		Owner: fmt.Sprint("relay-", n%1000), Incarnation: fmt.Sprintf("%016x", n%1000), Epoch: 3, Expiry: 20 * time.Second, Previous: "relay-2",
		History: "ABCDEFGHIJKLM", Continuation: fmt.Sprintf("%q", fmt.Sprint(512_345+n)), LSN: int64(512_345 + n), ChangeTime: 1_700_000_000, Reached: 600_000,
		Term: "1:2", Delivered: int64(512_345 + n), Handled: 99_999, Timestamp: time.Unix(1_700_000_001, 0).UTC(), Parent: "p.info",
	}
	record := l.encode()
	record.ETag = fmt.Sprint("etag", n)
	record.Body = append(record.Body[:len(record.Body)-1], `,"_rid":"x","_self":"dbs/x/colls/x/docs/x/","_etag":"\"0000\"","_attachments":"attachments/","_ts":1700000000}`...)
	return record
}

// A document as this package writes it, and the same decoded as one of another shape.
func BenchmarkDecodeLease(b *testing.B) {
	body := usualLease(1).Body
	b.Run("scan", func(b *testing.B) {
		for b.Loop() {
			if d := (leaseDocument{}); !d.scan(body) {
				b.Fatal("it has another shape")
			}
		}
	})
	b.Run("encoding json", func(b *testing.B) {
		for b.Loop() {
			var d leaseDocument
			if err := json.Unmarshal(body, &d); err != nil || unknownMembers(body) != nil {
				b.Fatal(err)
			}
		}
	})
}

// All that a host does for each lease of a listing but the plan.
func BenchmarkListing10000Leases(b *testing.B) {
	_, e := newFaultyStore(b)
	var records []Record
	for n := range 10_000 {
		records = append(records, usualLease(n))
	}
	e.store, e.ids = fixedListing{records: records}, recordIDs{prefix: "account.documents.azure.com_db_c"}
	l := &lister{env: e, checked: e.clock.Now()}
	for n := 0; b.Loop(); n++ {
		records[n%len(records)].ETag = fmt.Sprint("changed", n)
		seen, err := l.list(b.Context())
		if err != nil || len(seen.leases) != len(records) {
			b.Fatalf("%d leases, error %v", len(seen.leases), err)
		}
		var k kept
		k.keep(seen)
	}
}

type fixedListing struct {
	LeaseStore
	records []Record
}

func (s fixedListing) List(context.Context, string) ([]Record, error) { return s.records, nil }
