package changefeed

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLeaseDocumentIsTheOneOfDotNet(t *testing.T) {
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

func TestLeaseDocumentRoundTrip(t *testing.T) {
	l := Lease{
		ID: "p..-FF", ETag: `"e"`, Version: 1, Token: "-FF", Range: FullRange(), Mode: modeIncremental, Owner: "a", Incarnation: "i", Epoch: 3,
		Expiry: time.Second, Since: time.Unix(1700000000, 0).UTC(), LSN: 5, ChangeTime: 6, Timestamp: time.Unix(1700000001, 0).UTC(),
		Parent: "p.info", Children: []RangeToken{{Range: rng("", "1F"), Continuation: `"9"`}}, Handoff: "b/j", Previous: "c",
		Health: Retrying, Failures: 4, Error: "boom <&>", Failing: time.Unix(1700000002, 0).UTC(),
		Attempts: []DocumentAttempts{{Document: "5:x", Count: 2}},
		Request:  Request{Paused: true, Release: true, Retry: true, Rewind: &RangeToken{Range: FullRange(), Continuation: `"2"`}},
	}
	got, err := decodeLease(l.encode())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, l) {
		t.Errorf("got  %+v\nwant %+v", got, l)
	}
}

func TestLeaseDocumentKeepsWhatItDoesNotKnow(t *testing.T) {
	body := `{"id":"p..-FF","partitionKey":"guid","version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":null,
		"ContinuationToken":null,"properties":{"theirs":"kept"},"future":{"a":[1]},"_etag":"\"1\"","_ts":1,"_rid":"x"}`
	l, err := decodeLease(Record{ID: "p..-FF", ETag: `"1"`, Body: json.RawMessage(body)})
	if err != nil {
		t.Fatal(err)
	}
	l.Epoch = 1
	again := string(l.encode().Body)
	for _, want := range []string{`"partitionKey":"guid"`, `"theirs":"kept"`, `"future":{"a":[1]}`, `"epoch":"1"`} {
		if !strings.Contains(again, want) {
			t.Errorf("%s is not in %s", want, again)
		}
	}
	if strings.Contains(again, `"_ts"`) {
		t.Errorf("system members are written back: %s", again)
	}
}

func TestLeasesThatAreContinuedAndRefused(t *testing.T) {
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

// What is not live carries no LeaseToken: to KEDA's scaler and .NET's estimator
// it is no lease.
func TestOnlyLiveLeasesHaveALeaseToken(t *testing.T) {
	for _, state := range []LeaseState{LeaseLive, LeasePending, LeaseSplit, LeaseDone} {
		l := liveLease("", "FF")
		l.State, l.Token = state, "-FF"
		if has := strings.Contains(string(l.encode().Body), "LeaseToken"); has != (state == LeaseLive) {
			t.Errorf("state %q: LeaseToken present: %t", state, has)
		}
	}
}

func FuzzDecodeLease(f *testing.F) {
	l := liveLease("", "FF")
	l.Attempts = []DocumentAttempts{{Document: "1:a", Count: 2}}
	f.Add(string(l.encode().Body))
	f.Add(`{"version":0,"FeedRange":{"Range":{"min":"","max":"1F"}},"properties":{"rewind":"{}"}}`)
	f.Fuzz(func(t *testing.T, body string) {
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
