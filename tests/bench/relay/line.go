package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/wiring"
)

// line is the whole system: API, store, relay, broker and the consumer kit.
type line struct {
	store    *store
	broker   *broker
	stop     context.CancelFunc
	running  *errgroup.Group
	closers  []func() error
	client   *http.Client
	api      string
	contacts []string
	reads    atomic.Int64            // of the change feed
	current  atomic.Pointer[changes] // nil before the first run
	runs     int
}

// startLine starts API, relay and consumer. settings are those of the relay.
func startLine(ctx context.Context, settings ...string) (l *line, err error) {
	l = &line{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}}
	running, stop := context.WithCancel(ctx)
	l.stop = stop
	l.running, running = errgroup.WithContext(running)
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.store, err = openStore(Shape{Partitions: 4}); err != nil {
		return l, err
	}
	l.closers = append(l.closers, l.store.close)
	if l.broker, err = openBroker(ctx, false, true); err != nil {
		return l, err
	}
	l.closers = append(l.closers, l.broker.close)
	l.store.cosmos.Control(cosmosemu.OpReadChangeFeed, func(*cosmosemu.Call) *cosmosemu.Fault {
		l.reads.Add(1)
		return nil
	})
	if err := errors.Join(l.startAPI(running), l.startRelay(running, settings), l.startConsumer(running)); err != nil {
		return l, err
	}
	for range latencyContacts {
		id, err := l.create(ctx)
		if err != nil {
			return l, err
		}
		l.contacts = append(l.contacts, id)
	}
	return l, nil
}

func (l *line) environment(more ...string) []string {
	return append([]string{
		"FEEDBOX_COSMOS_ENDPOINT=" + l.store.cosmos.Endpoint(), "FEEDBOX_COSMOS_KEY=" + l.store.cosmos.Key(),
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + l.broker.bus.ConnectionString(),
	}, more...)
}

func (l *line) startAPI(ctx context.Context) error {
	sockets, err := wiring.Listen(ctx, "127.0.0.1:0", "")
	if err != nil {
		return err
	}
	address := sockets.API.Addr().String()
	l.api = "http://" + address + "/api/contacts"
	cfg, err := config.LoadAPI(l.environment("FEEDBOX_API_LISTEN=" + address))
	if err != nil {
		return errors.Join(err, sockets.Close())
	}
	app := fx.New(wiring.API(cfg, wiring.Params{Sockets: sockets, Log: slog.New(slog.DiscardHandler)}))
	l.running.Go(func() error { return wiring.Run(ctx, app, nil) })
	return nil
}

func (l *line) startRelay(ctx context.Context, settings []string) error {
	cfg, err := config.LoadRelay(l.environment(settings...))
	if err != nil {
		return err
	}
	app := fx.New(wiring.Relay(cfg, wiring.Params{Log: slog.New(slog.DiscardHandler)}))
	l.running.Go(func() error { return wiring.Run(ctx, app, nil) })
	return nil
}

func (l *line) startConsumer(ctx context.Context) error {
	kit, err := subscriber.NewSessionProcessor(l.broker.namespace(), source, l.handle, &subscriber.SessionOptions{
		Sessions: latencyContacts, SessionIdle: time.Minute, SessionMax: -1,
	})
	if err != nil {
		return err
	}
	l.running.Go(func() error { return kit.Run(ctx) })
	return nil
}

// firstName carries run and number of the change through the system. The run makes every
// name new, because the API ignores a change to the same name.
const firstName = `"firstName":"Change `

func (l *line) handle(_ context.Context, e *consumer.Event) error {
	_, after, found := strings.Cut(string(e.Body), firstName)
	name, _, _ := strings.Cut(after, `"`)
	run, number, _ := strings.Cut(name, " ")
	if i, err := strconv.Atoi(number); found && err == nil {
		if current := l.current.Load(); current != nil && current.name == run {
			current.handled(i)
		}
	}
	return nil
}

func (l *line) create(ctx context.Context) (id string, err error) {
	reply, err := l.post(ctx, l.api, `{"firstName":"Jane","lastName":"Doe","companyName":"Contoso"}`, http.StatusCreated)
	if err != nil {
		return "", err
	}
	var created struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(reply, &created); err != nil || created.ID == "" {
		return "", fmt.Errorf("the API made a contact and replied %q: %w", reply, err)
	}
	return created.ID, nil
}

func (l *line) update(ctx context.Context, contact int, run string, change int) error {
	body := fmt.Sprintf(`{%s%s %d","lastName":"Doe"}`, firstName, run, change)
	_, err := l.post(ctx, l.api+"/"+l.contacts[contact]+"/update-name", body, http.StatusNoContent)
	return err
}

// errRefused means that the API is overloaded.
var errRefused = errors.New("the API has too much to do")

func (l *line) post(ctx context.Context, url, body string, want int) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := l.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	switch reply.StatusCode {
	case http.StatusServiceUnavailable, http.StatusPreconditionFailed: // the second means that the previous change of the contact is still in progress
		return nil, errRefused
	}
	if err == nil && reply.StatusCode != want {
		err = fmt.Errorf("the API replied %d: %s", reply.StatusCode, text)
	}
	return text, err
}

func (l *line) close() error {
	l.stop()
	err := l.running.Wait()
	l.client.CloseIdleConnections()
	for i := len(l.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, l.closers[i]())
	}
	return err
}
