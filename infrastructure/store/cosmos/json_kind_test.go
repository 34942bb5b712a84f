package cosmos_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

// basket is an aggregate that the package does not know.
type basket struct {
	aggregate.Root
	lines []string
}

type (
	basketState  struct{ Lines []string }
	basketOpened struct{}
	lineAdded    struct {
		Line string `json:"line"`
	}
	basketEmptied struct {
		Version int `json:"sequence,omitempty"` // a name that is taken
	}
	basketCounted struct {
		Sequence int `json:",omitempty"` // without a name: of another case than the one that is taken
	}
	basketDropped struct{}
)

func (basketOpened) Action() string  { return "BasketOpenedEvent" }
func (lineAdded) Action() string     { return "LineAddedEvent" }
func (basketEmptied) Action() string { return "BasketEmptiedEvent" }
func (basketCounted) Action() string { return "BasketCountedEvent" }
func (basketDropped) Action() string { return "BasketDroppedEvent" }

func (b *basket) add(line string) {
	b.lines = append(b.lines, line)
	aggregate.Record(&b.Root, lineAdded{line}, uuid.New(), time.Now())
}

func basketKind() document.JSON[*basket, basketState] {
	return document.JSON[*basket, basketState]{
		Type:    "basket",
		State:   func(b *basket) basketState { return basketState{b.lines} },
		Restore: func(root aggregate.Root, s basketState) (*basket, error) { return &basket{root, s.Lines}, nil },
		Events: []document.EventCodec{
			document.JSONEvent[basketOpened](), document.JSONEvent[lineAdded](), document.JSONEvent[basketEmptied](), document.JSONEvent[basketCounted](), document.JSONEvent[basketDropped](),
		},
	}
}

func newBaskets(t *testing.T) (*world, *command.Service[*basket]) {
	t.Helper()
	w := newWorld(t, worldOptions{})
	work, err := cosmos.NewUnitsOfWork(w.container, basketKind().Kind(), nil, &cosmos.Options{Backoff: -1})
	must(t, err)
	return w, &command.Service[*basket]{Work: work, IDs: uuid.New, Now: time.Now, Audit: true, Noun: "basket", Namespace: uuid.MustParse("0a7f19f2-3d8c-4d0b-b8e3-5a4b7f1f6a11")}
}

func opening(key string) command.Creation[*basket] {
	return command.Creation[*basket]{
		Sender: command.Sender{Principal: "alice", IdempotencyKey: key}, Parts: []any{"OpenBasket"},
		Make: func(id uuid.UUID, requestHash string) (*basket, error) {
			root, err := aggregate.New(id, requestHash)
			b := &basket{Root: root}
			aggregate.Record(&b.Root, basketOpened{}, uuid.New(), time.Now())
			return b, err
		},
	}
}

func TestUnitsOfWorkOfAnyKind(t *testing.T) {
	t.Parallel()
	w, baskets := newBaskets(t)
	opened, err := baskets.Create(t.Context(), opening("k"))
	must(t, err)
	id := opened.Aggregate.ID()
	add := func(b *basket) error { b.add("pens"); b.add("paper"); return nil }
	updated, err := baskets.Update(t.Context(), command.Target{ID: id, IfMatch: []string{opened.ETag}, Sender: command.Sender{IdempotencyKey: "l"}}, add, "AddLines")
	if err != nil || updated.Version != 2 {
		t.Fatalf("%+v, %v", updated, err)
	}
	repeated, err := baskets.Update(t.Context(), command.Target{ID: id, IfMatch: []string{opened.ETag}, Sender: command.Sender{IdempotencyKey: "l"}}, add, "AddLines")
	if err != nil || !repeated.Replayed || repeated.Version != 2 {
		t.Errorf("the repeat: %+v, %v", repeated, err)
	}
	again, err := baskets.Create(t.Context(), opening("k"))
	if err != nil || !again.Replayed || again.Aggregate.ID() != id || again.ETag != "" {
		t.Errorf("created again: %+v, %v", again, err)
	}
	if _, err := baskets.Update(t.Context(), command.Target{ID: id, IfMatch: []string{opened.ETag}}, add); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("a stale ETag: %v", err)
	}
	events, err := storedEvents(t, w.container, id.String())
	must(t, err)
	var actions []string
	for _, e := range events {
		actions = append(actions, e.Action)
	}
	if strings.Join(actions, " ") != "BasketOpenedEvent LineAddedEvent LineAddedEvent" || events[2].Sequence != 3 || !strings.Contains(string(events[1].Body), `"line":"pens"`) ||
		!strings.Contains(string(events[1].Body), `"aggregateId":"`+id.String()+`"`) {
		t.Errorf("events %v, the second %s", actions, events[1].Body)
	}

	reader, err := cosmos.NewJSONReader[basketState](w.container, "basket")
	must(t, err)
	found, err := query.One(t.Context(), reader, "basket", query.Read{ID: id})
	if err != nil || strings.Join(found.State.State.Lines, " ") != "pens paper" || found.State.Root.Version != 2 || found.State.Root.Sequence != 3 {
		t.Errorf("read %+v, %v", found, err)
	}
	page, err := reader.Page(t.Context(), 10, "", "")
	if err != nil || len(page.Items) != 1 || page.Items[0].Root.ID != id || page.Items[0].ETag != found.ETag {
		t.Errorf("page %+v, %v", page, err)
	}
	audit, err := cosmos.NewAuditReader(w.container)
	must(t, err)
	if trail, err := query.ReadTrail(t.Context(), audit, reader, query.Trail{ID: id}); err != nil || len(trail.Entries) != 2 || trail.Entries[0].Principal != "alice" || len(trail.Entries[1].Events) != 2 {
		t.Errorf("trail %+v, %v", trail, err)
	}
}

// A tombstone outlives a deleted aggregate of any kind.
func TestDeletedAggregateOfAnyKindIsContinued(t *testing.T) {
	t.Parallel()
	w, baskets := newBaskets(t)
	opened, err := baskets.Create(t.Context(), opening("k"))
	must(t, err)
	id := opened.Aggregate.ID()
	_, err = baskets.Update(t.Context(), command.Target{ID: id}, func(b *basket) error {
		b.MarkDeleted()
		aggregate.Record(&b.Root, basketDropped{}, uuid.New(), time.Now())
		return nil
	})
	must(t, err)
	if _, err = baskets.Create(t.Context(), opening("k")); !fault.Is(err, fault.Gone) {
		t.Errorf("while it is there: %v", err)
	}
	reply, err := w.container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString(id.String()), id.String(), nil)
	must(t, err)
	var deleted struct{ TTL int }
	must(t, json.Unmarshal(reply.Value, &deleted))
	if deleted.TTL != 30*24*3600 {
		t.Errorf("a deleted basket stays for %d s", deleted.TTL)
	}
	_, err = w.container.DeleteItem(t.Context(), azcosmos.NewPartitionKeyString(id.String()), id.String(), nil) // it expires
	must(t, err)
	again, err := baskets.Create(t.Context(), opening("k"))
	if err != nil || again.Replayed || again.Aggregate.Version() != 3 {
		t.Errorf("once it is gone: %+v, %v", again, err)
	}
}

func TestKindRefusesReservedMembersAndUnknownEvents(t *testing.T) {
	t.Parallel()
	_, baskets := newBaskets(t)
	opened, err := baskets.Create(t.Context(), opening(""))
	must(t, err)
	_, err = baskets.Update(t.Context(), command.Target{ID: opened.Aggregate.ID()}, func(b *basket) error {
		aggregate.Record(&b.Root, basketEmptied{7}, uuid.New(), time.Now())
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "sequence: the name of the member is taken") {
		t.Errorf("a payload with a member of all events: %v", err)
	}
	_, err = baskets.Update(t.Context(), command.Target{ID: opened.Aggregate.ID()}, func(b *basket) error {
		aggregate.Record(&b.Root, basketCounted{7}, uuid.New(), time.Now())
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "Sequence: the name of the member is taken") {
		t.Errorf("a payload that its consumer would decode with the sequence of the event: %v", err)
	}
	if opened, err = baskets.Create(t.Context(), opening("")); err != nil {
		t.Fatal(err)
	}
	_, err = baskets.Update(t.Context(), command.Target{ID: opened.Aggregate.ID()}, func(b *basket) error {
		b.Events().Record(event.Of[unknownEvent]{Meta: b.Meta(uuid.New(), time.Now())})
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "no encoder for UnknownEvent") {
		t.Errorf("an unregistered event: %v", err)
	}
}

// A deployment must not find out by its first write.
func TestKindWithATakenMemberIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	type versioned struct{ Version int64 }
	state := document.JSON[*basket, versioned]{
		Type: "basket", Events: basketKind().Events,
		State:   func(*basket) versioned { return versioned{} },
		Restore: func(aggregate.Root, versioned) (*basket, error) { return nil, nil },
	}
	event := basketKind()
	event.Events = append(event.Events, document.JSONEvent[basketMoved]())
	for want, kind := range map[string]*document.Kind[*basket]{"versioned: Version: the name": state.Kind(), "BasketMovedEvent: cosmos_test.basketMoved: ID: the name": event.Kind()} {
		if _, err := cosmos.NewUnitsOfWork(w.container, kind, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The zero value is only a probe, so a payload need not be able to encode it.
func TestPayloadMayNotHaveAZeroValue(t *testing.T) {
	t.Parallel()
	kind := basketKind()
	kind.Events = append(kind.Events, document.JSONEvent[basketWeighed]())
	if _, err := cosmos.NewUnitsOfWork(newWorld(t, worldOptions{}).container, kind.Kind(), nil, nil); err != nil {
		t.Error(err)
	}
}

type basketWeighed struct{ grams *int }

func (basketWeighed) Action() string { return "BasketWeighedEvent" }

func (b basketWeighed) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"grams":%d}`, *b.grams), nil
}

type basketMoved struct{ ID string }

func (basketMoved) Action() string { return "BasketMovedEvent" }

// A field without a tag is named as in Go, and encoding/json does not distinguish upper and lower case: the
// state would be read with the version of its root, and stored with it by the next commit.
func TestStateKeepsAFieldThatHasTheNameOfTheRoot(t *testing.T) {
	t.Parallel()
	type firmware struct {
		aggregate.Root
		version int64
	}
	type state struct{ Version int64 }
	root, err := aggregate.New(uuid.New(), "")
	must(t, err)
	kind := document.JSON[*firmware, state]{
		Type: "firmware", State: func(f *firmware) state { return state{f.version} }, Events: []document.EventCodec{document.JSONEvent[basketOpened]()},
		Restore: func(root aggregate.Root, s state) (*firmware, error) { return &firmware{root, s.Version}, nil },
	}.Kind()
	f := &firmware{root, 271}
	data, err := kind.Encode(f, aggregate.Commit{Version: 3, Sequence: 3})
	if err == nil {
		read, decoded := kind.Decode(data)
		t.Fatalf("accepted as %s, and read as %+v, %v", data, read, decoded)
	}
	if !strings.Contains(err.Error(), "Version: the name of the member is taken") {
		t.Error(err)
	}
}

type unknownEvent struct{}

func (unknownEvent) Action() string { return "UnknownEvent" }

func TestIncompleteKindIsRefused(t *testing.T) {
	t.Parallel()
	w, _ := newOutbox(t)
	whole := basketKind()
	for says, change := range map[string]func(j *document.JSON[*basket, basketState]){
		"needs Type":        func(j *document.JSON[*basket, basketState]) { j.Type = "" },
		"is taken":          func(j *document.JSON[*basket, basketState]) { j.Type = "domainEvent" },
		"State and Restore": func(j *document.JSON[*basket, basketState]) { j.State = nil },
		"two codecs for Lin": func(j *document.JSON[*basket, basketState]) {
			j.Events = append(j.Events, document.JSONEvent[lineAdded]())
		},
		"Decode and Events":    func(j *document.JSON[*basket, basketState]) { j.Events = nil },
		"without an action or": func(j *document.JSON[*basket, basketState]) { j.Events = []document.EventCodec{{}} },
	} {
		wrong := whole
		change(&wrong)
		if _, err := cosmos.NewUnitsOfWork(w.container, wrong.Kind(), nil, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want something with %q", err, says)
		}
	}
	if _, err := cosmos.NewUnitsOfWork[*basket](w.container, nil, nil, nil); err == nil {
		t.Error("no kind")
	}
}
