package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/domain/fault"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

func TestSilence(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	for written, want := range map[time.Duration]time.Duration{time.Second: 0, 8 * time.Second: 0, 9 * time.Second: 9 * time.Second, time.Minute: time.Minute, -time.Hour: 0} {
		l := changefeed.Lease{Owner: "a", Expiry: 20 * time.Second, Timestamp: now.Add(-written)}
		if got := silence(l, 5*time.Second, now); got != want {
			t.Errorf("written %s ago: silent %s, want %s", written, got, want)
		}
		l.Owner = ""
		if got := silence(l, 5*time.Second, now); got != 0 {
			t.Errorf("nobody is silent for %s", got)
		}
	}
}

// The doctor judges what is unsent by its age: against what a takeover takes, the time in
// which the topic drops what comes again, and the lifetime of events.
func TestDoctorJudgesByAge(t *testing.T) {
	assumed := Window{Length: 10 * time.Minute, Assumed: true}
	hour := Window{Length: time.Hour}
	for _, c := range []struct {
		age    time.Duration
		window Window
		status FindingStatus
		next   string
	}{
		{30 * time.Second, assumed, FindingOK, ""},
		{3 * time.Minute, assumed, FindingWarning, "feedbox lag --watch shows for what"},
		{14 * time.Minute, assumed, FindingWarning, "older than a duplicate window of 10m0s (assumed"},
		{14 * time.Minute, hour, FindingWarning, "feedbox lag --watch shows for what"},
		{61 * time.Minute, hour, FindingWarning, "older than the broker's duplicate window of 1h0m0s"},
		{30 * time.Second, Window{}, FindingOK, ""},
		{3 * time.Minute, Window{}, FindingWarning, "older than the broker's duplicate window of 0s"},
		{70 * time.Hour, hour, FindingWarning, "does not keep up"},
		{200 * time.Hour, hour, FindingFailed, "events will be lost"},
	} {
		o := &Operator{cfg: &config.Relay{EventTTL: 240 * time.Hour}}
		got := o.judgeAge(Finding{Status: FindingOK}, c.age, c.window)
		if got.Status != c.status || !strings.Contains(got.Next, c.next) || strings.Contains(got.Next, "--container") {
			t.Errorf("%s, %s: %+v, want %+v", c.age, c.window, got, c)
		}
		o.cfg.Cosmos.Container, o.cfg.More = "orders", []string{"invoices/l/p"}
		if got := o.judgeAge(Finding{Status: FindingOK}, c.age, c.window); got.Next != "" && !strings.Contains(got.Next, " --container orders") {
			t.Errorf("%s of one of several containers: %+v", c.age, got)
		}
	}
}

// windows is a doctor that records which management APIs it was asked to read a duplicate window from.
type windows struct {
	BrokerDoctor
	asked []string
}

// Window implements BrokerDoctor.
func (w *windows) Window(_ context.Context, management string) Window {
	w.asked = append(w.asked, management)
	return Window{Length: 10 * time.Minute}
}

// unreadable is a feed that does not reply.
type unreadable struct{ changefeed.Feed }

// Read implements changefeed.Feed.
func (unreadable) Read(context.Context, changefeed.ReadRequest) (*changefeed.Page, error) {
	return nil, errors.New("no reply of the feed")
}

// The duplicate window is read only for events that are old enough for a warning, and only from a broker. A lag
// that is not known is no lag of zero.
func TestDoctorExaminesTheAgeOfUnsentEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := memfeed.New(nil)
		o, failing := newRelayed(t, feed)
		o.store.Doctor, o.cfg.EventTTL = plain{}, 240*time.Hour
		doctor := &windows{}
		found := func(broker *Broker, wantAsked int, want string) {
			t.Helper()
			o.broker, doctor.asked = broker, nil
			if got := texts([]Finding{o.examineAge(t.Context(), "http://management")}); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			if !slices.Equal(doctor.asked, slices.Repeat([]string{"http://management"}, wantAsked)) {
				t.Errorf("the window was read from %q, want %d reads", doctor.asked, wantAsked)
			}
		}
		known := &Broker{Doctor: doctor}
		readable := o.Leases
		leases, err := o.Leases.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o.Leases = changefeed.NewOperator(unreadable{feed}, o.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		found(known, 0, "unsent events unknown: the lag of "+changefeed.LeaseName(leases[0].ID)+" is unknown: no reply of the feed; feedbox lag")
		o.Leases = changefeed.NewOperator(feed, silentLeases{o.store.Leases}, &changefeed.OperatorOptions{Processor: "feedbox"})
		found(known, 0, "unsent events unknown: list leases: context deadline exceeded; feedbox lag")
		o.Leases = readable
		found(known, 0, "unsent events ok: 0 transactions behind, the oldest 0s old; events live 240h0m0s; ")
		away := errors.New("away")
		failing.Store(&away)
		feed.Put(memfeed.Document{Key: "k", ID: "e"})
		time.Sleep(slowDelivery - time.Second)
		found(known, 0, "unsent events ok: 1 transactions behind, the oldest 1m59s old; events live 240h0m0s; ")
		time.Sleep(time.Second)
		found(known, 1, "unsent events warning: 1 transactions behind, the oldest 2m0s old; events live 240h0m0s; the relay does not keep up, or waits: feedbox lag --watch shows for what")
		found(nil, 0, "unsent events warning: 1 transactions behind, the oldest 2m0s old; events live 240h0m0s; nothing is lost yet, but they are older than the broker's duplicate window of 0s: "+
			"what is sent again once a relay dies now reaches consumers twice; find out why the relay does not keep up: feedbox lag --watch")
	})
}

func TestUncovered(t *testing.T) {
	lease := func(from, to string) changefeed.Lease {
		return changefeed.Lease{Range: changefeed.FeedRange{Min: from, Max: to}}
	}
	for name, c := range map[string]struct {
		leases []changefeed.Lease
		want   []string
	}{
		"none yet":        {nil, nil},
		"whole":           {[]changefeed.Lease{lease("", "FF")}, nil},
		"two":             {[]changefeed.Lease{lease("", "1F"), lease("1F", "FF")}, nil},
		"two spellings":   {[]changefeed.Lease{lease("", "1F"), lease("1F00", "FF")}, nil},
		"hole":            {[]changefeed.Lease{lease("", "1F"), lease("2F", "FF")}, []string{"1F-2F"}},
		"ends":            {[]changefeed.Lease{lease("1F", "2F")}, []string{"-1F", "2F-FF"}},
		"parent in split": {[]changefeed.Lease{lease("", "FF"), lease("", "1F"), lease("1F", "FF")}, nil},
	} {
		if got := Uncovered(c.leases); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// plain describes errors as they are.
type plain struct{ StoreDoctor }

func (plain) Describe(err error) string { return err.Error() }

func newSharedStore(t *testing.T, ids ...string) *Operator {
	t.Helper()
	cfg, err := config.LoadRelay([]string{"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com", "FEEDBOX_SERVICEBUS_NAMESPACE=events.servicebus.windows.net"})
	if err != nil {
		t.Fatal(err)
	}
	store := Store{Store: relayport.Store{Name: "memory", Feed: memfeed.New(nil), Leases: memstore.New(nil), Markers: memstore.New(nil)}, Doctor: plain{}}
	for _, id := range ids {
		if _, err := store.Leases.Create(t.Context(), changefeed.Record{ID: id, Body: fmt.Appendf(nil, `{"id":%q}`, id)}); err != nil {
			t.Fatal(err)
		}
	}
	return New(cfg, store, nil)
}

func texts(found []Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, fmt.Sprintf("%s %s: %s; %s", f.Check, f.Status, f.Detail, f.Next))
	}
	return strings.Join(out, "\n")
}

func TestDoctorShowsOtherProcessors(t *testing.T) {
	o := newSharedStore(t, "feedboxmemory_db_coll.info", "feedboxmemory_db_coll..00-FF", "othermemory_db_coll.info", "othermemory_db_coll..00-FF", "feedboxmemory_db_old.info")
	if _, err := o.store.Adopt(t.Context(), "feedbox"); err != nil {
		t.Fatal(err)
	}
	got := texts(sharingOf(t, o))
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "other lease sets ok: feedboxmemory_db_old, of another container") ||
		!strings.Contains(got, "other lease sets warning: processor other has leases of the same container") {
		t.Errorf("%s", got)
	}
	feed := changefeed.Record{ID: "feedmemory_db_coll.info", Body: []byte(`{"id":"feedmemory_db_coll.info","version":1,"properties":{"state":"done","purpose":"feed"}}`)}
	documents := newSharedStore(t, "feedboxmemory_db_coll.info")
	if _, err := documents.store.Leases.Create(t.Context(), feed); err != nil {
		t.Fatal(err)
	}
	if got := texts(sharingOf(t, documents)); got != "other lease sets ok: feed, of feedbox feed; " {
		t.Errorf("documents of the same container are sent to a receiver: %s", got)
	}
	if got := texts(sharingOf(t, newSharedStore(t, "feedboxmemory_db_coll.info"))); got != "" {
		t.Errorf("one processor alone: %s", got)
	}
	if _, err := o.store.Adopt(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if got := texts(sharingOf(t, o)); !strings.HasPrefix(got, "owner of parked events failed: other; ") || !strings.Contains(got, "feedbox parked adopt") {
		t.Errorf("parked events of another processor: %s", got)
	}
	o.store.Leases = silentLeases{o.store.Leases}
	if got := texts(sharingOf(t, o)); !strings.Contains(got, "other lease sets unknown: ") {
		t.Errorf("a store that does not answer: %s", got)
	}
}

// Other shards are adopted only after all relays have stopped and checkpointed, and nothing is sent to them
// before.
func TestShardsChangeOnlyWithoutOwners(t *testing.T) {
	ids := []string{"feedboxmemory_db_coll.info", "feedboxmemory_db_coll..00-FF"}
	o := newSharedStore(t, ids...)
	if err := o.store.Claim(t.Context(), "feedbox", "a"); err != nil {
		t.Fatal(err)
	}
	o.cfg.ServiceBus.Shards = []string{"a", "b"}
	if got := texts(sharingOf(t, o)); !strings.Contains(got, "shards of the broker failed: changed; the keys were divided among a, and the configuration has a,b") {
		t.Errorf("doctor: %s", got)
	}
	o.broker = &Broker{Broker: relayport.Broker{Open: func(*slog.Logger, func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
		return &replayer{}, nil
	}}}
	if err := o.SendKey(t.Context(), &KeyReplay{}, nil); !isShardsError(err) {
		t.Errorf("a replay: %v", err)
	}
	read, err := o.store.Leases.Read(t.Context(), ids[1])
	if err != nil {
		t.Fatal(err)
	}
	write := func(owner string) {
		t.Helper()
		read.Body = fmt.Appendf(nil, `{"id":%q,"version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":%s,"ContinuationToken":"\"0\"","properties":{}}`, ids[1], owner)
		if read.ETag, err = o.store.Leases.Replace(t.Context(), read); err != nil {
			t.Fatal(err)
		}
	}
	write(`"relay-1"`)
	if _, err := o.Adopt(t.Context()); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "relay-1") {
		t.Errorf("adopted while a relay owns a range: %v", err)
	}
	write("null")
	if _, err := o.Adopt(t.Context()); err != nil || o.CheckShards(t.Context()) != nil {
		t.Errorf("after all relays have stopped: %v, %v", err, o.CheckShards(t.Context()))
	}

	// The shards of a damaged marker are not known.
	o.store.Markers = memstore.New(nil)
	if _, err := o.store.Markers.Create(t.Context(), changefeed.Record{ID: "$owner", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	write(`"relay-1"`)
	if _, err := o.Adopt(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("a damaged marker is adopted while a relay owns a range: %v", err)
	}
	write("null")
	if _, err := o.Adopt(t.Context()); err != nil {
		t.Errorf("a damaged marker after all relays have stopped: %v", err)
	}
}

// All silent leases count, because the last one says nothing about the others.
func TestDoctorCountsSilentLeases(t *testing.T) {
	o := newSharedStore(t)
	now := time.Now()
	for i, silent := range []time.Duration{75 * time.Second, 50 * time.Second, 0} {
		bounds := []string{"", "3F", "7F", "FF"}
		id := fmt.Sprintf("feedboxmemory_db_coll..%s-%s", bounds[i], bounds[i+1])
		body := fmt.Appendf(nil, `{"id":%q,"version":1,"LeaseToken":"%s-%s","FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":"relay-%d","ContinuationToken":"\"0\"","timestamp":%q,"properties":{"expiry":"20000"}}`,
			id, bounds[i], bounds[i+1], bounds[i], bounds[i+1], i, now.Add(-silent).Format(time.RFC3339Nano))
		if _, err := o.store.Leases.Create(t.Context(), changefeed.Record{ID: id, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	found := o.examineLeases(t.Context(), "")
	if want := "2 of 3 have a silent owner, for up to 1m15s: relay-0, relay-1"; found[0].Status != FindingWarning || found[0].Detail != want {
		t.Errorf("%+v, want %q", found[0], want)
	}
}

// A range may have a live owner that sends nothing.
func TestDoctorShowsRangesThatAreNotHealthy(t *testing.T) {
	o := newSharedStore(t)
	for i, trouble := range []string{"", `,"health":"stopped"`, `,"health":"retrying"`, `,"health":"unread"`, `,"paused":"true"`} {
		bounds := []string{"", "2F", "3F", "4F", "5F", "FF"}
		id := fmt.Sprintf("feedboxmemory_db_coll..%s-%s", bounds[i], bounds[i+1])
		body := fmt.Appendf(nil, `{"id":%q,"version":1,"LeaseToken":"%s-%s","FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":"relay","ContinuationToken":"\"0\"","timestamp":%q,"properties":{"expiry":"20000"%s}}`,
			id, bounds[i], bounds[i+1], bounds[i], bounds[i+1], time.Now().Format(time.RFC3339Nano), trouble)
		if _, err := o.store.Leases.Create(t.Context(), changefeed.Record{ID: id, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	got := texts(o.examineLeases(t.Context(), ""))
	for _, want := range []string{
		"leases ok: 5, all owned", "ranges failed: 1 of 5 are stopped, such as " + changefeed.LeaseName("feedboxmemory_db_coll..2F-3F") + "; feedbox leases ls",
		"ranges warning: 1 of 5 are unread", "ranges warning: 1 of 5 are retrying", "ranges warning: 1 of 5 are paused",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

// addLease stores a lease of the processor feedbox, written now.
func addLease(t *testing.T, o *Operator, from, to, owner, properties string) {
	t.Helper()
	id := fmt.Sprintf("feedboxmemory_db_coll..%s-%s", from, to)
	body := fmt.Appendf(nil, `{"id":%q,"version":1,"LeaseToken":"%s-%s","FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":%q,"ContinuationToken":"\"0\"","timestamp":%q,"properties":{%s}}`,
		id, from, to, from, to, owner, time.Now().Format(time.RFC3339Nano), properties)
	if _, err := o.store.Leases.Create(t.Context(), changefeed.Record{ID: id, Body: body}); err != nil {
		t.Fatal(err)
	}
}

// The lag of a range that is being split, or of one without a lease, is not measured. If the relays have ended
// meanwhile, its events are not sent either.
func TestDoctorDistinguishesAnUnmeasuredLagFromNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		split := newSharedStore(t)
		addLease(t, split, "", "FF", "", `"expiry":"20000","state":"split"`)
		pending := newSharedStore(t)
		for _, o := range []*Operator{split, pending} {
			addLease(t, o, "", "1F", "", `"state":"pending"`)
			addLease(t, o, "1F", "FF", "", `"state":"pending"`)
		}
		gap := newSharedStore(t)
		addLease(t, gap, "", "1F", "relay", `"expiry":"20000"`)
		name, part := changefeed.LeaseName("feedboxmemory_db_coll..-FF"), changefeed.LeaseName("feedboxmemory_db_coll..-1F")
		for _, c := range []struct {
			o     *Operator
			after time.Duration
			want  []string
		}{
			{split, time.Second, []string{"leases ok: 1, of which 1 are being split, the others owned", "unsent events unknown: the lag of " + name + " is unknown: it is being split; feedbox lag"}},
			{gap, 0, []string{"leases failed: no lease covers [1F-FF]; ", "unsent events unknown: no lease covers [1F-FF], so nothing measures the lag there; feedbox leases ls"}},
			{split, 2 * time.Minute, []string{"leases warning: 1 of 1 have no owner; ", "unsent events unknown: the lag of " + name + " is unknown: it is being split; feedbox lag"}},
			{pending, 0, []string{"leases warning: 2 of 2 have no owner; ", "unsent events unknown: the lag of " + part + " is unknown"}}, // of a first start that did not end
		} {
			time.Sleep(c.after)
			got := texts(c.o.examineLeases(t.Context(), ""))
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in:\n%s", want, got)
				}
			}
		}
	})
}

// Events of a container that was removed from the configuration too early are not sent.
func TestDoctorReportsFormerContainersWithUnsentEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newSharedStore(t)
		orders := newSharedStore(t)
		feed := memfeed.New(nil)
		feed.Put(memfeed.Document{Key: "k", ID: "e"})
		of := func(entry string) (*changefeed.Operator, error) {
			if entry != "orders/orders-leases/orders-parked" {
				return nil, fmt.Errorf("%s: %w", entry, changefeed.ErrNotFound)
			}
			return changefeed.NewOperator(feed, orders.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"}), nil
		}
		o.store.LeasesOf = of
		if err := errors.Join(o.store.Claim(t.Context(), "feedbox"), o.store.RecordOthers(t.Context(), []string{"orders/orders-leases/orders-parked", "deleted/l/p"})); err != nil {
			t.Fatal(err)
		}
		want := func(when, wanted string) {
			t.Helper()
			if got := texts(o.examineFormer(t.Context())); got != wanted {
				t.Errorf("%s: %q, want %q", when, got, wanted)
			}
		}
		want("without leases", "")
		addLease(t, orders, "", "FF", "", "")
		const add = "add orders/orders-leases/orders-parked to FEEDBOX_RELAY_CONTAINERS until its events are sent; if another processor sends them, or they are not needed, delete the leases of this one"
		const warning = "former containers warning: orders: 1 transactions behind, and no relay of this processor reads it; " + add
		want("removed", warning)
		o.cfg.More = []string{"orders/orders-leases/orders-parked"}
		want("configured", "")
		o.cfg.More = nil
		orders = newSharedStore(t)
		addLease(t, orders, "", "FF", "relay-2", `"expiry":"20000"`)
		want("read by relays with another configuration", "")
		time.Sleep(time.Minute)
		want("whose relay was killed", warning)
		const unread = "former containers unknown: orders: nothing measures the lag of a part of the keys, because it is being split or has no lease; " + add
		const remedy = "let this identity read it, or ignore this if its events were sent before it was removed"
		orders = newSharedStore(t)
		addLease(t, orders, "", "FF", "", `"expiry":"20000","state":"split"`)
		addLease(t, orders, "", "1F", "", `"state":"pending"`)
		want("removed during a split", unread)
		orders = newSharedStore(t)
		addLease(t, orders, "", "1F", "", "")
		feed = memfeed.New(nil)
		want("with a lost lease", unread)
		o.store.LeasesOf = func(string) (*changefeed.Operator, error) { return nil, errors.New("no reply") }
		want("silent", "former containers unknown: orders: no reply; "+remedy+"\nformer containers unknown: deleted: no reply; "+remedy)
	})
}

func isShardsError(err error) bool {
	_, ok := errors.AsType[*relayport.ShardsError](err)
	return ok
}

type silentLeases struct{ changefeed.LeaseStore }

// List implements changefeed.LeaseStore.
func (silentLeases) List(context.Context, string) ([]changefeed.Record, error) {
	return nil, context.DeadlineExceeded
}

// A pause must not hide that the events of a range are not sent at all.
func TestDoctorShowsGapsWhileAllIsPaused(t *testing.T) {
	ids := []string{"feedboxmemory_db_coll.info", "feedboxmemory_db_coll..00-FF"}
	o := newSharedStore(t, ids...)
	read, err := o.store.Leases.Read(t.Context(), ids[1])
	if err != nil {
		t.Fatal(err)
	}
	read.Body = fmt.Appendf(nil, `{"id":%q,"version":1,"LeaseToken":"-1F","FeedRange":{"Range":{"min":"","max":"1F"}},"Owner":null,"ContinuationToken":"\"0\"","properties":{}}`, ids[1])
	if _, err = o.store.Leases.Replace(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	for _, paused := range []bool{false, true} {
		if paused {
			if err := o.Leases.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := texts(o.examineLeases(t.Context(), ""))
		if !strings.Contains(got, "leases failed: no lease covers [1F-FF]") || strings.Contains(got, "all ranges are paused") != paused {
			t.Errorf("paused %v: %s", paused, got)
		}
	}
}

// Another name is the tempting remedy, but it sends all stored events again.
func TestDoctorDoesNotAdviseANewNameForRefusedLeases(t *testing.T) {
	o := newSharedStore(t, "feedboxmemory_db_coll..00-FF")
	found := o.examineLeases(t.Context(), "")
	if len(found) != 1 || found[0].Status != FindingFailed {
		t.Fatalf("%+v, want a failure", found)
	}
	for _, want := range []string{"delete only the records named", "Another FEEDBOX_PROCESSOR has no positions", "240h0m0s"} {
		if !strings.Contains(found[0].Next, want) {
			t.Errorf("the advice does not say %q: %s", want, found[0].Next)
		}
	}
}

// intents stores any intent.
type intents struct{ relayport.Parked }

func (intents) SetIntent(_ context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	return relay.Gate{Key: key, Intent: &intent}, nil
}

// A skipped event and the intent share one transaction, so the note must leave room for the event.
func TestLongNoteIsRefused(t *testing.T) {
	o := Operator{Parked: intents{}}
	intent := relay.Intent{Verb: relay.VerbSkip, Event: "e1", By: "ann", Note: strings.Repeat("n", maxNote-3)}
	if g, err := o.Note(t.Context(), "k", intent); err != nil || g.Intent.Note != intent.Note {
		t.Errorf("a note of %d bytes: %v", len(intent.Note), err)
	}
	intent.Note += "n"
	if _, err := o.Note(t.Context(), "k", intent); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "shorten") {
		t.Errorf("a note that is too long by one byte: %v", err)
	}
}

// replayer is a publisher that fails, and records the state of the context that it is closed with.
type replayer struct {
	relayport.Publisher
	fail   error
	sent   int
	closed []error
}

func (p *replayer) Publish(_ context.Context, groups []relay.Group) error {
	for _, g := range groups {
		p.sent += len(g.Messages)
	}
	return p.fail
}

func (p *replayer) Close(ctx context.Context) error {
	p.closed = append(p.closed, ctx.Err())
	return nil
}

// A page replays keys as long as it runs, so a publisher that stays open would keep its link.
func TestReplayOfAKeyClosesItsPublisher(t *testing.T) {
	for _, fail := range []error{nil, errors.New("cut")} {
		p := &replayer{fail: fail}
		o := replayingWith(p)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // as after an interrupt
		err := o.SendKey(ctx, &KeyReplay{Key: "k", Messages: []relay.Message{{ID: "e"}}}, func(int) {})
		if !errors.Is(err, fail) || len(p.closed) != 1 || p.closed[0] != nil {
			t.Errorf("%v: got %v, closed with %v; want one close, which has time left", fail, err, p.closed)
		}
	}
}

func replayingWith(p *replayer) *Operator {
	return &Operator{cfg: &config.Relay{}, Parked: gated{parkedtest.NewMemory()}, broker: &Broker{Broker: relayport.Broker{Open: func(*slog.Logger, func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
		return p, nil
	}}}}
}

// A key that is parked after its replay was planned is not overtaken, whether the operator has not confirmed
// yet or a part was sent.
func TestReplayEndsWhenItsKeyIsParked(t *testing.T) {
	for sent := range 2 {
		p := &replayer{}
		o := replayingWith(p)
		park := func(int) {
			if _, err := o.Parked.Park(t.Context(), "k", []relay.ParkedEvent{{ID: "e", Key: "k"}}, &relay.Closing{Event: "e"}); err != nil {
				t.Fatal(err)
			}
		}
		progress := park
		if sent == 0 {
			park(0)
			progress = func(int) {}
		}
		err := o.SendKey(t.Context(), &KeyReplay{Key: "k", Messages: make([]relay.Message, 3*keyBatch)}, progress)
		if !fault.Is(err, fault.Conflict) || p.sent != sent*keyBatch {
			t.Errorf("parked after %d batches: sent %d events, %v", sent, p.sent, err)
		}
	}
}

// sharingOf returns the findings about other processors.
func sharingOf(t *testing.T, o *Operator) []Finding {
	t.Helper()
	return slices.Concat(o.examineOwner(t.Context()), o.examineLeaseSets(t.Context()))
}
