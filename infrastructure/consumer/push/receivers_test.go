package push

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/consumer"
)

// The receivers of PUSH.md accept events in order, also one that an operator sent again, ignore
// repetitions, refuse with a reason, and those
// that verify signatures answer 401 to another secret.
func TestReceiversOfTheDocument(t *testing.T) {
	document, err := os.ReadFile("../../../cmd/feedbox/PUSH.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		language, file string
		command        []string
		mode           Mode
		reason         string
	}{
		{"js", "receiver.mjs", []string{"node"}, Structured, ": amount is missing"},
		{"python", "receiver.py", []string{"python3"}, Structured, ": amount is missing"},
		{"java", "Receiver.java", []string{"java", "-XX:TieredStopAtLevel=1"}, Binary, ""},
	} {
		t.Run(c.language, func(t *testing.T) {
			if _, err := exec.LookPath(c.command[0]); err != nil {
				t.Skip(err)
			}
			_, after, found := strings.Cut(string(document), "\n```"+c.language+"\n")
			code, _, ends := strings.Cut(after, "\n```\n")
			if !found || !ends {
				t.Fatalf("PUSH.md has no program in %s", c.language)
			}
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			key := make([]byte, 32)
			_, _ = rand.Read(key) // never fails
			lines, port := program(t, append(c.command, path), "PUSH_SECRET=whsec_"+base64.StdEncoding.EncodeToString(key))
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			o := Options{To: "http://127.0.0.1:" + port + "/events", Mode: c.mode, Transport: transport, Logger: slog.New(slog.DiscardHandler)}
			if c.mode != Binary {
				stranger := o
				stranger.Secrets = [][]byte{make([]byte, 32)}
				s, err := New(stranger)
				if err != nil {
					t.Fatal(err)
				}
				answer, ok := errors.AsType[*statusError](s.try(t.Context(), "a", []Event{fromConsumer(event("a", 1), "")}, &streak{}))
				if !ok || answer.status != http.StatusUnauthorized {
					t.Errorf("with another secret: %v, want 401", answer)
				}
				o.Secrets = [][]byte{make([]byte, 32), key} // during a rotation
			}
			s, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int64{1, 2, 1, 2, 3} {
				for _, key := range []string{"order 1+1", "örder%20"} {
					e := event(key, n)
					e.Body = []byte(`{"amount": 120}`)
					if err := handle(t, s, time.Minute, e); err != nil {
						t.Fatalf("%s %d: %v", key, n, err)
					}
				}
			}
			for range 2 { // an operator sent a dead letter again, after later events of its key
				e := event("order 1+1", 2)
				e.Body, e.Resubmission = []byte(`{"amount": 120}`), "r1"
				if err := handle(t, s, time.Minute, e); err != nil {
					t.Fatal(err)
				}
			}
			dead, ok := errors.AsType[*consumer.DeadLetterError](handle(t, s, time.Minute, event("order 1+1", 4)))
			if !ok || dead.Reason != "refused_422" || !strings.HasSuffix(dead.Description(), c.reason) {
				t.Errorf("without an amount: %v", dead)
			}
			var want []string
			for n := 1; n <= 3; n++ {
				want = append(want, fmt.Sprintf("order 1+1 %d OrderPaid", n), fmt.Sprintf("örder%%20 %d OrderPaid", n))
			}
			want = append(want, "order 1+1 2 OrderPaid")
			var got []string
			for range want {
				got = append(got, <-lines)
			}
			if !slices.Equal(got, want) {
				t.Errorf("the receiver printed %q, want %q", got, want)
			}
		})
	}
}

// program starts a receiver and returns its output and its port.
func program(t *testing.T, command []string, environ ...string) (lines <-chan string, port string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), "PORT=0", "LC_ALL=C.UTF-8", "PYTHONUTF8=1", "JAVA_TOOL_OPTIONS=-Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8"), environ...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(all)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			all <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = cmd.Wait()
	})
	first, ok := <-all
	port, found := strings.CutPrefix(first, "port ")
	if !ok || !found {
		cancel()
		<-done
		_ = cmd.Wait() // then nothing writes to errs
		t.Fatalf("%v: %q %s", command, first, errs.String())
	}
	return all, port
}

// benched returns a sender to a receiver in this process, which counts the requests.
func benched(b *testing.B, o Options) (s *Sender, requests *atomic.Int64) {
	b.Helper()
	requests = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		requests.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	b.Cleanup(server.Close)
	o.To, o.Logger = server.URL, slog.New(slog.DiscardHandler)
	s, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	return s, requests
}

var body = []byte(`{"action":"OrderPaid","amount":120,"text":"` + fmt.Sprintf("%0400d", 0) + `"}`)

// BenchmarkEvents sends events of many keys, one event in a request.
func BenchmarkEvents(b *testing.B) {
	for _, mode := range []Mode{Structured, Binary} {
		b.Run(string(mode), func(b *testing.B) {
			s, _ := benched(b, Options{Mode: mode})
			var keys atomic.Int64
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				key := fmt.Sprint("key", keys.Add(1))
				for n := int64(1); pb.Next(); n++ {
					if err := s.Handle(b.Context(), &consumer.Event{ID: key, Key: key, Action: "OrderPaid", Sequence: n, CreatedAt: time.Now(), Body: body}); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkLatency measures the time of an event at 1,000 events a second, from the call to the answer.
func BenchmarkLatency(b *testing.B) {
	s, _ := benched(b, Options{})
	var mu sync.Mutex
	var all []time.Duration
	var sending sync.WaitGroup
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := range max(b.N, 2000) {
		<-tick.C
		sending.Go(func() {
			began := time.Now()
			key := fmt.Sprint("key", n)
			if err := s.Handle(b.Context(), &consumer.Event{ID: key, Key: key, Action: "OrderPaid", Sequence: 1, Body: body}); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, time.Since(began))
		})
	}
	sending.Wait()
	slices.Sort(all)
	b.ReportMetric(all[len(all)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(all[len(all)*99/100].Seconds()*1000, "p99-ms")
}

// Every mode carries the same event. Data that is not JSON is sent as bytes.
func TestModesCarryTheSameEvent(t *testing.T) {
	e := &consumer.Event{
		ID: "5f\n", Key: "order ü", Action: "OrderPaid", Sequence: 1 << 40, AggregateVersion: 7, CreatedAt: time.Unix(1700000000, 5e6),
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Properties: map[string]any{"cloudEvents_source": "/orders"},
	}
	want := map[string]string{
		"specversion": "1.0", "id": "5f\n", "source": "/orders", "type": "OrderPaid", "time": "2023-11-14T22:13:20.005Z",
		"partitionkey": "order ü", "keysequence": "1099511627776", "aggregateversion": "7", "traceparent": e.Traceparent,
	}
	for _, mode := range []Mode{Structured, Binary, Batch} {
		for _, data := range []string{` {"a": 1.0, "b":"<&>"}`, "\x00no JSON\xff", ""} {
			e.Body = []byte(data)
			body, header := encode(mode, []Event{fromConsumer(e, "")})
			got, gotData := decode(t, mode, body, header)
			for name, value := range want {
				if got[name] != value {
					t.Errorf("%s: %s is %q, want %q", mode, name, got[name], value)
				}
			}
			if strings.TrimSpace(gotData) != strings.TrimSpace(data) || header.Get("Traceparent") != e.Traceparent {
				t.Errorf("%s: data %q, want %q; %v", mode, gotData, data, header)
			}
		}
	}
}

// decode reads a request as a receiver does.
func decode(t *testing.T, mode Mode, body []byte, header http.Header) (attributes map[string]string, data string) {
	t.Helper()
	attributes = map[string]string{}
	if mode == Binary {
		for name, values := range header {
			if name, ok := strings.CutPrefix(strings.ToLower(name), "ce-"); ok {
				attributes[name] = unescape(values[0])
			}
		}
		return attributes, string(body)
	}
	if mode == Batch {
		var all []json.RawMessage
		if err := json.Unmarshal(body, &all); err != nil || len(all) != 1 {
			t.Fatalf("batch %q: %v", body, err)
		}
		body = all[0]
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	for name, raw := range members {
		switch name {
		case "data":
			data = string(raw)
		case "data_base64":
			var decoded []byte
			if err := json.Unmarshal(raw, &decoded); err != nil {
				t.Fatal(err)
			}
			data = string(decoded)
		default:
			attributes[name] = textOf(raw)
		}
	}
	return attributes, data
}

func unescape(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		var c byte
		if n, _ := fmt.Sscanf(s[i:], "%%%02X", &c); n == 1 {
			b, i = append(b, c), i+2
		} else {
			b = append(b, s[i])
		}
	}
	return string(b)
}

// Any event is a valid request: an invalid header would fail at every attempt and hold its key for ever.
func FuzzEventIsAValidRequest(f *testing.F) {
	f.Add("id", "key", "action", "00-1", []byte(`{}`), int64(1))
	f.Add("\xff\n", "%41", `"`, "\r", []byte{0}, int64(-1))
	f.Fuzz(func(t *testing.T, id, key, action, trace string, data []byte, n int64) {
		e := &consumer.Event{ID: id, Key: key, Action: action, Traceparent: trace, Body: data, Sequence: n}
		for _, mode := range []Mode{Structured, Binary, Batch} {
			body, header := encode(mode, []Event{fromConsumer(e, "")})
			for name, values := range header {
				if strings.ContainsFunc(values[0], func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Errorf("%s: header %s is %q", mode, name, values[0])
				}
			}
			if mode == Binary {
				if key != "" && unescape(header.Get("Ce-Partitionkey")) != key {
					t.Errorf("key %q is %q", key, header.Get("Ce-Partitionkey"))
				}
			} else if !json.Valid(body) {
				t.Errorf("%s: %q is no JSON", mode, body)
			}
		}
	})
}

// A receiver that drops repeats by the id must not drop other events.
func TestEventsWithoutAnIDHaveDifferentIDs(t *testing.T) {
	enqueued := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	events := []consumer.Event{
		{Key: "a", Body: []byte(`1`)},
		{Key: "a", Body: []byte(`2`)},
		{Key: "b", Body: []byte(`1`)},
		{Key: "a", Action: "Paid", Body: []byte(`1`)},
		{Key: "a", Body: []byte(`1`), SequenceNumber: 7},
		{Key: "a", Body: []byte(`1`), EnqueuedAt: enqueued},
		{Key: "a", Body: []byte(`1`), CreatedAt: enqueued},
		{Key: "a", Sequence: 1, Body: []byte(`1`)},
	}
	seen := map[string]int{}
	for i := range events {
		id := fromConsumer(&events[i], "").ID
		if was, repeated := seen[id]; repeated {
			t.Errorf("events %d and %d have the id %s", was, i, id)
		}
		seen[id] = i
		events[i].DeliveryCount++
		if again := fromConsumer(&events[i], "").ID; again != id {
			t.Errorf("event %d has the ids %s and %s", i, id, again)
		}
	}
	if id := fromConsumer(&events[7], "").ID; id != "a/1" {
		t.Errorf("an event with a sequence has the id %s", id)
	}
}

// Each accepted document of a key has an answer, and the first one that is not. The later ones of its key are not
// sent, and those of other keys are. A refused batch is sent again one by one.
func TestDocumentsAreAnsweredUpToTheFirstFailureOfTheirKey(t *testing.T) {
	document := func(key, id string) Document {
		return Document{ID: []byte(strconv.Quote(id)), Version: []byte(`"\"v1\""`), Key: []byte(key), LSN: 7, Raw: []byte(`{}`)}
	}
	all := []Document{document(`"a"`, "a1"), document(`"b"`, "b1"), document(`"a"`, "a2"), document(`"1"`, "text1"), document("1", "number1"), document(`"a"`, "a3")}
	all[4].Version = nil
	for _, c := range []struct {
		batch    int
		statuses map[string]int // by the document
		want     map[int]string // by its index
		sent     string         // of key a
	}{
		{1, nil, map[int]string{0: "accepted", 1: "accepted", 2: "accepted", 3: "accepted", 4: "accepted", 5: "accepted"}, "a1, a2, a3"},
		{0, map[string]int{"a2": 422}, map[int]string{0: "accepted", 1: "accepted", 2: "refused_422", 3: "accepted", 4: "accepted"}, "a1, a2"},
		{1, map[string]int{"a1": 500, "b1": 404}, map[int]string{0: "500", 1: "404", 3: "accepted", 4: "accepted"}, "a1"},
		{1, map[string]int{"a3": 409}, map[int]string{0: "accepted", 1: "accepted", 2: "accepted", 3: "accepted", 4: "accepted", 5: "refused_409"}, "a1, a2, a3"},
		{2, nil, map[int]string{0: "accepted", 1: "accepted", 2: "accepted", 3: "accepted", 4: "accepted", 5: "accepted"}, "a1 a2, a3"},
		{2, map[string]int{"a2": 422}, map[int]string{0: "accepted", 1: "accepted", 2: "refused_422", 3: "accepted", 4: "accepted"}, "a1 a2, a1, a2"},
		{9, map[string]int{"a2": 422}, map[int]string{0: "accepted", 1: "accepted", 2: "refused_422", 3: "accepted", 4: "accepted"}, "a1 a2 a3, a1, a2"},
		{9, map[string]int{"a2": 502}, map[int]string{0: "502", 1: "accepted", 3: "accepted", 4: "accepted"}, "a1 a2 a3"},
	} {
		var mu sync.Mutex
		var sent []string
		ids := map[string]bool{}
		bubble(t, Options{Mode: Batch}, func(w http.ResponseWriter, r *http.Request) {
			var events []struct{ ID, Source, Type, Subject string }
			if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			var subjects []string
			status := http.StatusOK
			for _, e := range events {
				ids[fmt.Sprint(e)] = true
				subjects = append(subjects, e.Subject)
				status = max(status, c.statuses[e.Subject])
			}
			if of := strings.Join(subjects, " "); of[0] == 'a' {
				sent = append(sent, of)
			}
			w.WriteHeader(status)
		}, func(t *testing.T, s *Sender) {
			got := map[int]string{}
			s.Documents(t.Context(), all, DocumentOptions{Type: "ContactChanged", Batch: c.batch}, func(i int, err error) {
				mu.Lock()
				defer mu.Unlock()
				answer := "accepted"
				if dead, ok := errors.AsType[*consumer.DeadLetterError](err); ok {
					answer = dead.Reason
				} else if err != nil {
					answer = strconv.Itoa(Status(err))
				}
				if got[i] != "" {
					answer = got[i] + " and " + answer
				}
				got[i] = answer
			})
			if !maps.Equal(got, c.want) || strings.Join(sent, ", ") != c.sent {
				t.Errorf("batches of %d, %v: answers %v, want %v; of key a were sent %q, want %s", c.batch, c.statuses, got, c.want, sent, c.sent)
			}
			if !ids["{b1@v1 /feedbox ContactChanged b1}"] || !ids["{number1@7 /feedbox ContactChanged number1}"] {
				t.Errorf("events %v", slices.Sorted(maps.Keys(ids)))
			}
		})
	}
}

// The event of a document contains the whole document, and the attributes by which a receiver finds it.
func TestDocumentIsTheDataOfItsEvent(t *testing.T) {
	d := Document{ID: []byte(`"c1"`), Version: []byte(`"\"v1\""`), Key: []byte(`"ann"`), LSN: 7, Time: time.Date(2026, 1, 31, 8, 0, 0, 5e6, time.UTC), Raw: []byte(`{"id":"c1"}`)}
	want := Event{
		ID: "c1@v1", Source: "/feedbox", Type: "ContactChanged", Subject: "c1", Key: "ann", LSN: 7, Time: "2026-01-31T08:00:00.005Z", Data: []byte(`{"id":"c1"}`),
	}
	if got := d.event("/feedbox", "ContactChanged"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A receiver that asks to wait holds every document, and none of them is refused.
func TestDocumentsWaitIfTheReceiverAsksForIt(t *testing.T) {
	bubble(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusTooManyRequests)
	}, func(t *testing.T, s *Sender) {
		all := []Document{{ID: []byte(`"1"`), Key: []byte(`"a"`)}, {ID: []byte(`"2"`), Key: []byte(`"a"`)}}
		for range 2 { // the second time nothing is sent
			answers := 0
			s.Documents(t.Context(), all, DocumentOptions{Type: "ContactChanged"}, func(i int, err error) {
				answers++
				if until, ok := Paused(err); i != 0 || !ok || time.Until(until) != 90*time.Second {
					t.Errorf("document %d: %v until %s", i, err, until)
				}
			})
			if answers != 1 {
				t.Errorf("%d answers, want one", answers)
			}
		}
	})
}
