package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/application/command"
	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
)

const insertEvent = `INSERT INTO events (hash, key, id, document) VALUES ($1, $2, $3, $4)`

// drain reads all ranges to their ends, calls saw for each event and returns their number.
func drain(t testing.TB, feed *postgres.Feed, positions map[changefeed.FeedRange]string, maxItems int, saw func(key, id string)) (items int) {
	t.Helper()
	ranges, err := feed.Ranges(t.Context())
	must(t, err)
	for _, r := range ranges {
		for {
			page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: r, Continuation: positions[r], MaxItems: maxItems})
			must(t, err)
			lsn := int64(0)
			for i, item := range page.Items {
				var key string
				must(t, json.Unmarshal(item.Key, &key))
				at, err := feed.Place(key)
				must(t, err)
				if !r.Has(at) || item.LSN < lsn {
					t.Fatalf("range %s shows %s, LSN %d after %d", r, key, item.LSN, lsn)
				}
				lsn = page.Items[i].LSN
				var d struct{ ID string }
				must(t, json.Unmarshal(item.Raw, &d))
				saw(key, d.ID)
			}
			items += len(page.Items)
			positions[r] = page.Continuation
			if page.CaughtUp {
				break
			}
		}
	}
	return items
}

// Transactions begin and end in any order: none is missed or delivered twice, those of one key keep
// their order, and no page splits one.
func TestLateCommitsAreNeverMissed(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, nil)
	must(t, err)
	ended, committed := commitInAnyOrder(t, pool, feed)
	seen := map[string][]string{}
	positions := map[changefeed.FeedRange]string{}
	saw := func(key, id string) { seen[key] = append(seen[key], id) }
	for running := true; running; {
		select {
		case <-ended:
			running = false
		default:
		}
		drain(t, feed, positions, 3, saw)
	}
	within(t, "every committed event is read", func() bool {
		drain(t, feed, positions, 3, saw)
		return count(seen) >= count(committed)
	})
	compare(t, seen, committed)
}

// hash returns the hash of a key.
func hash(feed *postgres.Feed, key string) (h int64) {
	at, _ := feed.Place(key) // never fails
	_, _ = fmt.Sscanf(at, "%X", &h)
	return h
}

// An open transaction holds back later commits and is reported.
func TestOpenTransactionHoldsBackTheFeed(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	positions := map[changefeed.FeedRange]string{}
	var got []string
	saw := func(_, id string) { got = append(got, id) }
	store := func(on *pgxpool.Pool, id string) {
		_, err := on.Exec(t.Context(), insertEvent, hash(feed, id), id, id, fmt.Sprintf(`{"id":%q}`, id))
		must(t, err)
	}
	open, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = open.Rollback(context.WithoutCancel(t.Context())) }() // the pool waits for it
	_, err = open.Exec(t.Context(), insertEvent, hash(feed, "late"), "late", "late", `{"id":"late"}`)
	must(t, err)
	store(pool, "early")
	if drain(t, feed, positions, 10, saw); len(got) > 0 {
		t.Fatalf("shown before an older transaction has ended: %v", got)
	}
	time.Sleep(20 * time.Millisecond)
	drain(t, feed, positions, 10, saw)
	if feed.Held() < 10*time.Millisecond {
		t.Errorf("held for %s", feed.Held())
	}
	within(t, "the withheld event is reported", func() bool {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: positions[changefeed.FullRange()]})
		must(t, err)
		return page.CaughtUp && page.Withheld == 1 && time.Since(page.WithheldSince) > time.Second
	})
	another, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1}) // of an operator, whose first read does not know since when
	must(t, err)
	if page, err := another.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: positions[changefeed.FullRange()]}); err != nil || page.Withheld != 1 {
		t.Errorf("the first read of another process reports %+v, %v", page, err)
	}
	oldest, err := db.OldestTransaction(t.Context())
	if err != nil || oldest.Age < 10*time.Millisecond || oldest.Age > time.Hour || !strings.Contains(oldest.End, "pg_terminate_backend") {
		t.Errorf("the oldest transaction is %+v, %v", oldest, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if at, err := feed.Now(ctx, changefeed.FullRange()); err == nil {
		t.Errorf("the end of the feed is %s although a transaction is open", at)
	}
	must(t, open.Commit(t.Context()))
	within(t, "both events are read", func() bool { return drain(t, feed, positions, 10, saw) == 0 && len(got) >= 2 && feed.Held() == 0 })
	if fmt.Sprint(got) != "[late early]" || feed.Held() != 0 {
		t.Errorf("then %v, held for %s", got, feed.Held())
	}
	if page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: positions[changefeed.FullRange()]}); err != nil || page.Withheld != 0 {
		t.Errorf("after the transaction %+v, %v", page, err)
	}
	end, err := feed.Now(t.Context(), changefeed.FullRange())
	must(t, err)
	store(pool, "new")
	var page *changefeed.Page
	within(t, "the new event is read", func() bool {
		page, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: end})
		return err != nil || len(page.Items) > 0
	})
	if err != nil || len(page.Items) != 1 || string(page.Items[0].Key) != `"new"` {
		t.Errorf("from the end on: %+v, %v", page, err)
	}
	page, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Since: time.Now().Add(time.Hour)})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("since an hour from now: %+v, %v", page, err)
	}
}

func TestRanges(t *testing.T) {
	db := open(t)
	for _, n := range []int{3, -1, 2048} {
		if _, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: n}); err == nil {
			t.Errorf("%d ranges are accepted", n)
		}
	}
	few, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 2})
	must(t, err)
	many, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 8})
	must(t, err)
	halves, _ := few.Ranges(t.Context())
	eighths, _ := many.Ranges(t.Context())
	_, err = many.Read(t.Context(), changefeed.ReadRequest{Range: halves[1]})
	split, ok := errors.AsType[*changefeed.SplitError](err)
	if !ok || fmt.Sprint(split.Children) != fmt.Sprint(eighths[4:]) {
		t.Errorf("a half of eight ranges: %v", err)
	}
	for _, r := range eighths { // after a merge leases stay narrow
		if page, err := few.Read(t.Context(), changefeed.ReadRequest{Range: r}); err != nil || !page.CaughtUp {
			t.Errorf("an eighth of two ranges: %+v, %v", page, err)
		}
	}
	for _, bad := range []string{`"x"`, "1", `"-1"`} {
		if _, err := few.Read(t.Context(), changefeed.ReadRequest{Range: halves[0], Continuation: bad}); !errors.Is(err, changefeed.ErrPermanent) {
			t.Errorf("continuation %s: %v", bad, err)
		}
	}
}

// eventsOnly is the decoder of a store without other documents.
type eventsOnly struct{}

func (eventsOnly) Decode([]byte) (relay.Message, bool, error) { return relay.Message{}, true, nil }

// openTransaction begins a transaction that has an id already.
func openTransaction(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }) // none after a commit
	_, err = tx.Exec(t.Context(), `SELECT pg_current_xact_id()`)
	must(t, err)
	return tx
}

// The feed has the order of transaction ids, in which the times of events may fall: an old transaction emits late.
// A replay from a time between must not move the checkpoint past an event that was never sent.
func TestReplayFromATimeSkipsNoUnsentEvent(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	old := openTransaction(t, pool)
	_, err = pool.Exec(t.Context(), insertEvent, hash(feed, "b"), "b", "unsent", `{"id":"unsent"}`)
	must(t, err)
	time.Sleep(500 * time.Millisecond)
	var from time.Time
	must(t, pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&from))
	time.Sleep(1500 * time.Millisecond)
	_, err = old.Exec(t.Context(), insertEvent, hash(feed, "a"), "a", "sent", `{"id":"sent"}`)
	must(t, err)
	must(t, old.Commit(t.Context()))
	_, err = pool.Exec(t.Context(), insertEvent, hash(feed, "c"), "c", "later", `{"id":"later"}`)
	must(t, err)
	var page *changefeed.Page
	within(t, "the first event is read", func() bool {
		page, err = feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 1})
		must(t, err)
		return len(page.Items) == 1
	})
	if raw := string(page.Items[0].Raw); raw != `{"id":"sent"}` {
		t.Fatalf("the first event is %s", raw)
	}
	source, err := feed.Source(t.Context())
	must(t, err)
	id := "feedbox" + source.Host + "_" + source.Database + "_" + source.Container + "..-FF"
	body := fmt.Sprintf(`{"id":%q,"version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":null,"ContinuationToken":%q,"properties":{"lsn":"%d","changeTime":"%d"}}`,
		id, page.Continuation, page.Items[0].LSN, page.Items[0].Timestamp)
	leases := postgres.Leases{DB: db}
	_, err = leases.Create(t.Context(), changefeed.Record{ID: id, Body: []byte(body)})
	must(t, err)

	o := operator.New(&config.Relay{Processor: "feedbox"}, operator.Store{Store: relayport.Store{Feed: feed, Leases: leases, Decoder: eventsOnly{}}}, nil)
	plan, err := o.PlanReplay(t.Context(), from, time.Minute, func(int) {})
	must(t, err)
	if len(plan) != 1 {
		t.Fatalf("plan %+v", plan)
	}
	at := changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: page.Continuation}
	if plan[0].Left == "" && plan[0].Events > 0 { // as feedbox replay does
		must(t, o.Rewind(t.Context(), from, plan[0].Lease))
		all, err := o.Leases.Leases(t.Context())
		must(t, err)
		at.Continuation, at.Since = all[0].Request.Rewind.Continuation, all[0].Request.Rewind.Since
	}
	var sent []string
	for {
		page, err := feed.Read(t.Context(), at)
		must(t, err)
		for _, item := range page.Items {
			sent = append(sent, string(item.Raw))
		}
		at.Continuation, at.Since = page.Continuation, time.Time{}
		if page.CaughtUp {
			break
		}
	}
	if !strings.Contains(strings.Join(sent, ""), "unsent") {
		t.Errorf("after the replay from %s (%+v) the relay sends %v, and never the event that was not sent before", from.Format(time.RFC3339Nano), plan[0], sent)
	}
}

// The first unsent event of the feed may be younger than later ones, because an old transaction emitted it late. A
// relay that does not run has sent none of them.
func TestUnsentEventIsNotShownAsSent(t *testing.T) {
	db, pool := openAt(t, database(t))
	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	old := openTransaction(t, pool)
	_, err = pool.Exec(t.Context(), insertEvent, hash(feed, "b"), "b", "early", `{"id":"early"}`)
	must(t, err)
	time.Sleep(3500 * time.Millisecond)
	_, err = old.Exec(t.Context(), insertEvent, hash(feed, "a"), "a", "late", `{"id":"late"}`)
	must(t, err)
	must(t, old.Commit(t.Context()))
	source, err := feed.Source(t.Context())
	must(t, err)
	id := "feedbox" + source.Host + "_" + source.Database + "_" + source.Container + "..-FF"
	leases := postgres.Leases{DB: db}
	_, err = leases.Create(t.Context(), changefeed.Record{ID: id, Body: fmt.Appendf(nil, `{"id":%q,"version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":null,"ContinuationToken":"\"0\"","properties":{}}`, id)})
	must(t, err)
	o := operator.New(&config.Relay{Processor: "feedbox"}, operator.Store{Store: relayport.Store{
		Feed: feed, Leases: leases, Decoder: eventsOnly{}, Events: recordstore.Events{Store: postgres.Records{DB: db}, Decoder: eventsOnly{}},
		Parked: parked.Store{Records: postgres.Parked{DB: db}},
	}}, nil)
	var s operator.Snapshot
	within(t, "the events are below the horizon", func() bool {
		s, err = o.Measure(t.Context())
		must(t, err)
		return s.Behind == 2 || len(s.Ranges) == 1 && s.Ranges[0].Lag.Transactions > 1
	})
	timeline, err := o.Timeline(t.Context(), "b", s)
	must(t, err)
	if len(timeline.Events) != 1 || timeline.Events[0].Status == operator.StatusSent {
		t.Errorf("nothing was sent, shown is %+v", timeline.Events)
	}
}

// order is a publisher that keeps the sequences of what it is given, by key.
type order map[string][]int64

func (o order) Publish(_ context.Context, groups []relay.Group) error {
	for _, g := range groups {
		for i := range g.Messages {
			o[g.Key] = append(o[g.Key], g.Messages[i].Sequence)
		}
	}
	return nil
}

// Events were copied from another server, and the operator does what the start advises. The relay sends the events of
// each key in their order.
func TestAdviceForCopiedEventsKeepsTheOrderOfKeys(t *testing.T) {
	db, pool := openAt(t, database(t))
	p := baskets(t, db, nil)
	made, err := p.Create(t.Context(), recordstoretest.Opening("one"))
	must(t, err)
	target := command.Target{ID: made.Aggregate.ID()}
	for range 2 { // commits of two events each
		_, err := p.Update(t.Context(), target, func(b *recordstoretest.Basket) error { return errors.Join(b.Add("a"), b.Add("b")) })
		must(t, err)
	}
	state, err := db.State(t.Context())
	must(t, err)
	state.Foreign = true
	_, advice, _ := strings.Cut(state.Faults()[0].Next, "run ")
	advice, _, _ = strings.Cut(advice, ", and start again")
	_, err = pool.Exec(t.Context(), advice)
	must(t, err)
	if state, err := db.State(t.Context()); err != nil || state.Foreign {
		t.Errorf("after the advice %+v, %v", state, err)
	}
	store, err := postgres.NewRelayStore(db, &postgres.RelayStoreOptions{Ranges: 1, Hold: -1})
	must(t, err)
	sent := order{}
	r, err := relay.New(store.Decoder, sent, nil)
	must(t, err)
	at := ""
	within(t, "all events are sent", func() bool {
		page, err := store.Feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: at, MaxItems: 1000})
		must(t, err)
		var changes []relay.Change
		for _, item := range page.Items {
			changes = append(changes, relay.Change{Raw: item.Raw, LSN: item.LSN, Timestamp: item.Time()})
		}
		if failed := r.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: 1}, changes); failed != nil {
			t.Fatal(failed)
		}
		at = page.Continuation
		return len(sent[target.ID.String()]) == 5
	})
	if got := fmt.Sprint(sent[target.ID.String()]); got != "[1 2 3 4 5]" {
		t.Errorf("after %q the relay sends the events of a key in the order %s", advice, got)
	}
}
