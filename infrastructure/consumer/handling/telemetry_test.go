package handling_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// counts reads all metrics: sums, and the number of measurements of histograms.
func counts(t *testing.T, from *sdkmetric.ManualReader) map[string]int {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := from.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	read := map[string]int{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					read[m.Name] += int(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					if p.Sum < 0 {
						t.Errorf("%s: the sum is %f", m.Name, p.Sum)
					}
					failed, _ := p.Attributes.Value("error.type")
					read[strings.TrimSpace(m.Name+" "+failed.AsString())] += int(p.Count)
				}
			}
		}
	}
	return read
}

func TestConsumerMetricsCountEveryOutcome(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	read := func() map[string]int { return counts(t, reader) }
	atFirst := map[string]int{
		"messaging.client.consumed.messages": 0, "outbox.consumer.handled": 0, "outbox.consumer.failed": 0, "outbox.consumer.retried": 0,
		"outbox.consumer.dead_lettered": 0, "outbox.consumer.parked": 0, "outbox.consumer.gaps": 0, "outbox.consumer.forks": 0, "outbox.consumer.duplicates": 0, "outbox.consumer.dropped": 0,
	}
	var release chan struct{}
	written := tracetest.NewInMemoryExporter()
	run(t, consumer.Options{
		Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), Tracers: sdktrace.NewTracerProvider(sdktrace.WithSyncer(written)),
	}, func(_ context.Context, e *consumer.Event) error {
		switch {
		case e.ID == "a2" && e.DeliveryCount == 1:
			return errors.New("not yet")
		case e.ID == "a3":
			return consumer.DeadLetter("unknown_schema", nil)
		case e.ID == "b1":
			<-release
		}
		return nil
	}, func(d *broker) {
		release = make(chan struct{}) // of the bubble
		if diff := cmp.Diff(atFirst, read()); diff != "" {
			t.Errorf("at first (-want +got):\n%s", diff)
		}
		d.deliver("a", 1, 1, 2, 3, 5) // a duplicate, a failure, a dead letter, a gap
		d.deliver("b", 1, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := maps.Clone(atFirst)
		want["messaging.client.consumed.messages"], want["outbox.consumer.in_hand"] = 7, 2
		want["messaging.process.duration"], want["outbox.consumer.lag"] = 3, 3
		want["messaging.process.duration *errors.errorString"], want["messaging.process.duration unknown_schema"] = 1, 1
		want["outbox.consumer.handled"], want["outbox.consumer.failed"], want["outbox.consumer.dead_lettered"] = 3, 2, 1
		want["outbox.consumer.duplicates"], want["outbox.consumer.gaps"] = 1, 1
		want["outbox.consumer.retried"] = 1 + 3 // of the failure, and of the event after the gap
		if diff := cmp.Diff(want, read()); diff != "" {
			t.Errorf("in the end (-want +got):\n%s", diff)
		}
		if n := len(written.GetSpans()); n != 5 { // b1 has not returned
			t.Errorf("%d spans of five calls", n)
		}
		d.loseLocks(consumer.ErrLockLost) // b2 waits, and is not handled any more
		close(release)
		synctest.Wait()
		if n := read()["outbox.consumer.in_hand"]; n != 0 {
			t.Errorf("%d events in hand after the locks were lost", n)
		}
	})
}

// The handler runs below the request in its trace. Without a sampled request there is no span.
func TestHandlerRunsInTheTraceOfItsRequest(t *testing.T) {
	const traceID, request = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for flags, spans := range map[string]int{"01": 2, "00": 0} {
		exported := tracetest.NewInMemoryExporter()
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
		r := handling.Runner{
			Source: handling.Source{System: "servicebus", Destination: "contacts", Subscription: "billing"}, Tracers: tracers,
			Handler: func(ctx context.Context, e *consumer.Event) error {
				if got := trace.SpanContextFromContext(ctx); got.TraceID().String() != traceID || got.IsSampled() != (spans > 0) {
					t.Errorf("flags %s: the handler's context has %s, sampled %t", flags, got.TraceID(), got.IsSampled())
				}
				if e.Action == "Broken" {
					panic("broken")
				}
				return nil
			},
		}
		if err := r.Init(); err != nil {
			t.Fatal(err)
		}
		for _, action := range []string{"Created", "Broken"} {
			_ = r.Handle(t.Context(), &consumer.Event{ID: "e1", Key: "k", Action: action, Traceparent: "00-" + traceID + "-" + request + "-" + flags, DeliveryCount: 1})
		}
		written := exported.GetSpans()
		if len(written) != spans {
			t.Fatalf("flags %s: %d spans", flags, len(written))
		}
		for i, span := range written {
			got := fmt.Sprint(span.Name, " ", span.SpanKind, " ", span.Parent.SpanID(), " ", span.Status.Code, " ", len(span.Links))
			want := "process contacts consumer " + request + " " + []string{"Unset", "Error"}[i] + " 1"
			if got != want {
				t.Errorf("span %q, want %q", got, want)
			}
			attributes := map[string]string{}
			for _, a := range span.Attributes {
				attributes[string(a.Key)] = a.Value.String()
			}
			if attributes["messaging.destination.subscription.name"] != "billing" || attributes["messaging.message.id"] != "e1" || (attributes["error.type"] == "panic") != (i == 1) {
				t.Errorf("attributes %v", attributes)
			}
		}
	}
}

func TestRepeatedFailureIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := handling.Runner{Handler: func(context.Context, *consumer.Event) error { return nil }, Log: slog.New(slog.NewJSONHandler(&out, nil))}
		if err := r.Init(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for n := range 150 { // one a second, the cause changes once
			r.NotReceived(t.Context(), "contacts", fmt.Errorf("port %d: %w", n, map[bool]error{true: context.DeadlineExceeded, false: errors.New("closed")}[n < 90]), n+1)
			time.Sleep(time.Second)
		}
		r.ReceivedAgain(t.Context(), "contacts", 150)
		for range 2 {
			r.Log.WarnContext(t.Context(), "slow")
			r.Log.InfoContext(t.Context(), "drained") // a state, not a failure
		}
		var got []string
		for text := range strings.Lines(out.String()) {
			var line struct {
				Time               time.Time
				Msg, Reason        string
				Repeated, Failures int
			}
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(line.Time.Sub(began), " ", line.Msg, " ", line.Reason, " ", line.Repeated, " ", line.Failures))
		}
		want := []string{
			"0s receiving failed unreachable 0 1", "1m0s receiving failed unreachable 59 61",
			"1m30s receiving failed unknown 0 91", "2m30s receiving again  0 150",
			"2m30s slow  0 0", "2m30s drained  0 0", "2m30s drained  0 0",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

func TestOutcomesThatMatterToOperatorsAreLogged(t *testing.T) {
	var out bytes.Buffer
	run(t, consumer.Options{GapDeliveries: 1, Logger: slog.New(slog.NewTextHandler(&out, nil))}, func(_ context.Context, e *consumer.Event) error {
		switch {
		case e.ID == "a2" && e.DeliveryCount == 1:
			return errors.New("not yet")
		case e.ID == "a3":
			return consumer.DeadLetter("unknown_schema", errors.New("version 9"))
		}
		return nil
	}, func(d *broker) {
		d.deliver("a", 1, 1, 2, 3, 6)
		time.Sleep(time.Minute)
	})
	rest := out.String()
	for _, want := range []string{
		`level=WARN msg="event failed; it is retried" reason=*errors.errorString error="not yet" event.id=a2 event.key=a`,
		`level=WARN msg="event dead-lettered" next="remove the cause, then resubmit the event from the dead-letter queue" reason=unknown_schema error="dead letter: unknown_schema: version 9" event.id=a3`,
		`level=WARN msg="event waits for a missing one" missing=2 reason=missing_event`,
		`level=WARN msg="event handled without an earlier one of its key" missing=2 event.id=a6`,
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is missing or out of order in\n%s", want, out.String())
		}
		rest = after
	}
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

// The events of the history that the store has now are handled in order, and the first one says how many
// of the handled ones that history does not contain. It is counted and logged.
func TestForkIsHandledCountedAndLogged(t *testing.T) {
	var log bytes.Buffer
	var handled []string
	reader := sdkmetric.NewManualReader()
	k := handling.KeyProcessor{Inbox: consumer.NewMemoryInbox(0), Runner: &handling.Runner{
		Handler: func(_ context.Context, e *consumer.Event) error {
			handled = append(handled, fmt.Sprint(e.ID, " ", e.Replaced))
			return nil
		},
		Log: slog.New(slog.NewTextHandler(&log, nil)), Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	}}
	if err := errors.Join(k.Init(), k.Load(t.Context(), "k")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2", "3", "4", "2", "3'", "3", "4'", "5"} {
		e := &consumer.Event{ID: id, Key: "k", Sequence: int64(id[0] - '0')}
		if fresh := k.IsFresh(e); fresh != (id != "2" || len(handled) < 4) {
			t.Errorf("event %s: next %t", id, fresh)
		}
		out := consumer.Outcome{Event: e}
		if k.Process(t.Context(), &out, &handling.Progress{}); out.Err != nil {
			t.Error(out.Err)
		}
		k.Observe(t.Context(), out)
	}
	// 3 was redelivered: it replaces 3' in turn, and 4' follows. Nothing of the new history is missing.
	if want := []string{"1 0", "2 0", "3 0", "4 0", "3' 2", "3 1", "4' 0", "5 0"}; !slices.Equal(handled, want) {
		t.Errorf("handled %q, want %q", handled, want)
	}
	if n := counts(t, reader)["outbox.consumer.forks"]; n != 2 || !strings.Contains(log.String(), "event of another history handled") {
		t.Errorf("%d forks are counted; the log is %s", n, &log)
	}
}
