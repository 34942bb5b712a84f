package explorer

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/page"
	"feedbox/infrastructure/process/azure"
)

const agent = "explorer-test"

// site serves the explorer of two small emulators.
type site struct {
	t      *testing.T
	cosmos *cosmosemu.Server
	bus    *busemu.Server
	server *httptest.Server
}

func newSite(t *testing.T, options ...*cosmosemu.Options) *site {
	t.Helper()
	s := &site{t: t, cosmos: cosmosemu.StartT(t, options...), bus: busemu.StartT(t)}
	check(t, s.cosmos.CreateContainer("shop", cosmosemu.ContainerProps{ID: "orders", PartitionKey: []string{"/customer"}, Partitions: 2}))
	for i := range 30 {
		s.create(string(rune('a'+i%3)), fmt.Sprintf("order-%02d", i))
	}
	check(t, s.bus.CreateTopic(t.Context(), busemu.Topic{Name: "events", RequiresDuplicateDetection: true, Subscriptions: []busemu.Subscription{{
		Name: "all", RequiresSession: true, Rules: []busemu.Rule{{Name: "big", Filter: busemu.Filter{Kind: busemu.SQLFilter, Expression: "size > 3"}}},
	}}}))
	check(t, s.bus.CreateQueue(t.Context(), busemu.Queue{Name: "jobs", MaxDeliveryCount: 1}))
	management, err := azure.Redirect(s.bus.AdminURL())
	check(t, err)
	e, err := New(s.cosmos, s.bus, management, agent)
	check(t, err)
	p, err := page.New(&page.Options{Actions: true, Sections: e.Sections(true)})
	check(t, err)
	t.Cleanup(p.Close)
	s.server = httptest.NewServer(p)
	t.Cleanup(s.server.Close)
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) create(customer, id string) {
	s.t.Helper()
	c, err := s.cosmos.Client().NewContainer("shop", "orders")
	check(s.t, err)
	_, err = c.CreateItem(s.t.Context(), azcosmos.NewPartitionKeyString(customer), []byte(`{"id":"`+id+`","customer":"`+customer+`","type":"order","size":5}`), nil)
	check(s.t, err)
}

// get returns a page as text.
func (s *site) get(path string) string {
	s.t.Helper()
	reply, err := s.server.Client().Get(s.server.URL + path)
	check(s.t, err)
	return s.body(reply)
}

func (s *site) body(reply *http.Response) string {
	s.t.Helper()
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	check(s.t, err)
	return string(text)
}

var hidden = regexp.MustCompile(`name="(token|stamp)" value="([^"]*)"`)

// act submits an act with values and the hidden fields of the form at another path.
func (s *site) act(form, path string, values url.Values) string {
	s.t.Helper()
	for _, m := range hidden.FindAllStringSubmatch(s.get(form), -1) {
		values.Set(m[1], m[2])
	}
	values.Set("who", "a tester")
	values.Set("why", "a test")
	reply, err := s.server.Client().PostForm(s.server.URL+path, values)
	check(s.t, err)
	text := s.body(reply)
	for deadline := time.Now().Add(time.Minute); strings.Contains(text, `state busy">running`) && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		text = s.get(reply.Request.URL.RequestURI())
	}
	return text
}

// eventually polls a page for a minute until it has all parts.
func (s *site) eventually(path string, parts ...string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		text := s.get(path)
		if time.Now().After(deadline) || !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) }) {
			s.want(text, parts...)
			return
		}
	}
}

func (s *site) want(text string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			_, content, _ := strings.Cut(text, "<main")
			s.t.Fatalf("want %q in\n%s", part, content)
		}
	}
}

func TestDatabase(t *testing.T) {
	s := newSite(t)
	s.want(s.get("/database"), "orders", "/customer")
	s.want(newSite(t, &cosmosemu.Options{Throughput: 14_000}).get("/database/container/shop/orders"), "of 7000 RU/s, 0 throttled")
	first := s.get("/database/container/shop/orders")
	s.want(first, "25 on this page", "request units", "Next page", "order-00", `id="range-0"`, "not limited")
	next := regexp.MustCompile(`href="(/database/container/shop/orders\?[^"]*next=[^"]*)"`).FindStringSubmatch(first)
	s.want(s.get(html.UnescapeString(next[1])), "5 on this page", "First page")
	s.want(s.get("/database/container/shop/orders?query="+url.QueryEscape("SELECT c.id FROM c WHERE c.customer = 'b'")), "10 on this page")
	s.want(s.get("/database/container/shop/orders?key=c&query="+url.QueryEscape("SELECT VALUE COUNT(1) FROM c")), "1 on this page", ">10<")
	s.want(s.get("/database/container/shop/orders?query=SELEKT"), `id="wrong"`, "400")
	s.want(s.get("/database/container/shop/none"), "There is no such container")

	container := "/database/container/shop/orders"
	s.act(container, "/database/split", url.Values{"db": {"shop"}, "coll": {"orders"}, "range": {"0"}})
	s.want(s.get(container), `id="range-2"`, `id="range-3"`, "Merge with 2: range 3")
	s.act(container, "/database/merge", url.Values{"db": {"shop"}, "coll": {"orders"}, "left": {"2"}, "right": {"3"}})
	s.want(s.get(container), `id="range-4"`)
	s.want(s.act(container, "/database/split", url.Values{"db": {"shop"}, "coll": {"orders"}, "range": {"0"}}), "That is not possible")
}

func TestDocument(t *testing.T) {
	s := newSite(t)
	of := url.Values{"db": {"shop"}, "coll": {"orders"}, "id": {"order-00"}, "key": {`["a"]`}}
	view := "/database/document/shop/orders?" + of.Encode()
	s.want(s.get(view), "&#34;size&#34;: 5", "Edit", "Delete")
	with := func(more ...string) url.Values {
		v := url.Values{}
		for name, all := range of {
			v[name] = all
		}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	s.want(s.act("/database/replace?"+of.Encode(), "/database/replace", with("document", "{")), "The document is not JSON")
	s.want(s.act("/database/replace?"+of.Encode(), "/database/replace", with("document", `{"id":"order-00","customer":"a","size":7}`)), "replaced order-00")
	s.want(s.get(view), "&#34;size&#34;: 7")
	s.want(s.act("/database/delete?"+of.Encode(), "/database/delete", with()), "deleted order-00")
	s.want(s.get(view), "There is no such document")
}

// The change feed starts when its page is opened, and continues through a split.
func TestChangeFeed(t *testing.T) {
	s := newSite(t)
	s.want(s.get("/database/feed/shop/orders"), "No change yet")
	s.create("a", "late-1")
	s.eventually("/database/feed/shop/orders", "late-1", "1 changes")
	check(t, s.cosmos.Split("shop", "orders", "0"))
	check(t, s.cosmos.Split("shop", "orders", "1"))
	s.create("b", "late-2")
	s.create("c", "late-3")
	s.eventually("/database/feed/shop/orders", "late-1", "late-2", "late-3", "3 changes")
}

func TestBroker(t *testing.T) {
	s := newSite(t)
	session := "s1"
	for i := range int64(30) {
		check(t, s.bus.Send(t.Context(), "events", busemu.Message{ID: "m" + string(rune('A'+i)), Session: &session, Subject: "Changed", Properties: map[string]any{"size": i}, Body: []byte(`{"n":1}`)}))
	}
	s.want(s.get("/broker"), "events", "30 messages accepted", "within 10 min", "with sessions", "jobs")
	path := url.QueryEscape("events/Subscriptions/all")
	s.want(s.get("/broker/rules?path="+path), "big", "size &gt; 3")
	first := s.get("/broker/messages?path=" + path)
	s.want(first, "1 sessions on this page", "Next page", "Changed")
	next := regexp.MustCompile(`href="(/broker/messages\?from=[^"]*)">Next`).FindStringSubmatch(first)
	s.want(s.get(html.UnescapeString(next[1])), "First page")
	s.want(s.get("/broker/messages?session=s1&path="+path), "all sessions", "Changed")
	s.want(s.get("/broker/messages?session=s2&path="+path), "No messages")
	s.want(s.get("/broker/message?path="+path+"&number=1"), "&#34;n&#34;: 1", "s1")
	s.want(s.get("/broker/message?path="+path+"&number=99999"), "There is no such message")
	s.want(s.get("/broker/messages?path=none"), "There is no such entity")
	for _, none := range []string{"../../x", "jobs", "events/Subscriptions/none", "none/Subscriptions/all"} {
		s.want(s.get("/broker/rules?path="+url.QueryEscape(none)), "There is no such subscription")
	}
	for _, none := range []string{"", "nope", "jobs/$DeadLetterQueue", "events/Subscriptions/all"} {
		s.want(s.get("/broker/send?to="+url.QueryEscape(none)), "There is no such topic or queue")
	}
	s.want(s.act("/broker/send?to=jobs", "/broker/send", url.Values{"to": {"jobs"}, "id": {"j1"}, "body": {"hello"}}), "sent to jobs as j1")
	s.act("/broker", "/broker/status", url.Values{"path": {"jobs"}, "to": {"off"}})
	s.want(s.get("/broker"), "Enable jobs", "Disabled")
	s.act("/broker", "/broker/status", url.Values{"path": {"jobs"}, "to": {"on"}})
}

func TestDeadLetterIsResubmitted(t *testing.T) {
	s := newSite(t)
	check(t, s.bus.Send(t.Context(), "jobs", busemu.Message{ID: "other", Body: []byte(`{"a": [1,2]}`)}, busemu.Message{ID: "bad", Subject: "Job", Body: []byte("{")}))
	client := s.bus.Client()
	receiver, err := client.NewReceiverForQueue("jobs", nil)
	check(t, err)
	for range 2 {
		found, err := receiver.ReceiveMessages(t.Context(), 1, nil)
		check(t, err)
		check(t, receiver.DeadLetterMessage(t.Context(), found[0], nil))
	}
	check(t, receiver.Close(context.Background()))
	dead := "jobs/$DeadLetterQueue"
	letters, err := s.bus.Peek(dead, 10)
	check(t, err)
	if len(letters) != 2 {
		t.Fatalf("%d dead letters", len(letters))
	}
	list := s.get("/broker/messages?path=" + url.QueryEscape(dead))
	n := regexp.MustCompile(`number=(\d+)[^>]*>bad<`).FindStringSubmatch(list)[1]
	of := url.Values{"path": {dead}, "number": {n}}
	s.want(s.act("/broker/resubmit?"+of.Encode(), "/broker/resubmit", url.Values{"path": {dead}, "number": {n}, "id": {"mended"}, "body": {"{}"}}), "sent to jobs")
	again, err := s.bus.Peek("jobs", 10)
	check(t, err)
	left, err := s.bus.Peek(dead, 10)
	check(t, err)
	if len(again) != 1 || again[0].ID != "mended" || string(again[0].Body) != "{}" || again[0].Subject != "Job" || len(left) != 1 || left[0].ID != "other" {
		t.Errorf("in the queue %+v, in the dead letters %+v", again, left)
	}
	// What a browser returns of a body that was not changed is sent with the bytes of the dead letter.
	n = regexp.MustCompile(`number=(\d+)[^>]*>other<`).FindStringSubmatch(list)[1]
	of.Set("number", n)
	shown := "{\r\n  \"a\": [\r\n    1,\r\n    2\r\n  ]\r\n}"
	s.want(s.act("/broker/resubmit?"+of.Encode(), "/broker/resubmit", url.Values{"path": {dead}, "number": {n}, "id": {"other"}, "body": {shown}}), "sent to jobs")
	again, err = s.bus.Peek("jobs", 10)
	check(t, err)
	if len(again) != 2 || string(again[1].Body) != `{"a": [1,2]}` {
		t.Errorf("in the queue %+v", again)
	}
}

// A fault affects the clients of the emulators, but not the page, until it is turned off.
func TestFaults(t *testing.T) {
	s := newSite(t)
	turn := func(to string, names ...string) {
		t.Helper()
		for _, name := range names {
			s.act("/faults", "/faults/switch", url.Values{"fault": {name}, "to": {to}})
		}
	}
	send := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		sender, err := s.bus.Client().NewSender("jobs", nil)
		check(t, err)
		return sender.SendMessage(ctx, &azservicebus.Message{Body: []byte("x")}, nil)
	}
	get := func() int {
		reply, err := s.cosmos.HTTPClient().Get(s.cosmos.Endpoint() + "dbs")
		if err != nil {
			return -1
		}
		_ = reply.Body.Close()
		return reply.StatusCode
	}
	before := get()
	for name, want := range map[string]int{"cosmos-throttle": 429, "cosmos-fail": 503, "cosmos-cut": -1, "cosmos-lose": -1} {
		turn("on", name)
		if got := get(); got != want && before == 200 {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
		s.want(s.get("/database/container/shop/orders"), "25 on this page") // the page is not affected
		turn("off", name)
	}
	for _, name := range []string{"bus-full", "bus-cut"} {
		turn("on", name)
		if err := send(700 * time.Millisecond); err == nil {
			t.Errorf("%s: the message was accepted", name)
		}
		s.want(s.get("/faults"), "Turn all off", "calls affected")
	}
	s.act("/faults", "/faults/clear", url.Values{})
	if err := send(time.Minute); err != nil {
		t.Errorf("all faults are off: %v", err)
	}
	was := s.bus.Now()
	s.act("/faults", "/faults/clock", url.Values{"by": {"hour"}})
	if moved := s.bus.Now().Sub(was); moved < time.Hour {
		t.Errorf("the clock moved by %s", moved)
	}
	s.want(s.get("/faults"), "moved ahead here by 1 h")
	s.want(s.act("/faults", "/faults/switch", url.Values{"fault": {"none"}, "to": {"on"}}), "There is no such switch")
}
