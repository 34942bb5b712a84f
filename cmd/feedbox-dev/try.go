package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/page"
)

//go:embed try/*.html
var tryFiles embed.FS

// trying is the section "Try it" of the page: create a contact, break an event.
type trying struct {
	e    *endpoints
	seen *seenEvents

	mu     sync.Mutex // guards broken
	broken []string   // keys, latest first
}

// tryView is the data of its template.
type tryView struct {
	Curl     string
	Broken   []string
	Received []received
}

const shownReceived = 20

func (t *trying) section() page.Section {
	files, _ := fs.Sub(tryFiles, "try") // the folder is embedded
	return page.Section{
		Path: "try", Title: "Try it", Templates: files,
		Views: []page.View{{Template: "try.html", Every: time.Second, Data: func(*http.Request) (any, error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			return tryView{Curl: t.e.curl(), Broken: slices.Clone(t.broken), Received: t.seen.last(shownReceived)}, nil
		}}},
		Acts: []page.Act{
			{Path: "create", Title: "Create a contact", Verb: "Create", AtOnce: true, Do: t.create},
			{Path: "break", Title: "Break an event", Verb: "Break", AtOnce: true, Do: t.breakEvent},
		},
	}
}

// create creates a contact through the API and redirects to its history.
func (t *trying) create(ctx context.Context, o *page.Order) error {
	body, err := json.Marshal(map[string]string{
		"firstName": o.Values.Get("first"), "lastName": o.Values.Get("last"), "email": o.Values.Get("email"), "companyName": o.Values.Get("company"),
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.e.API+"/api/contacts", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 64<<10))
	if err != nil {
		return err
	}
	var created struct {
		ID     string `json:"id"`
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal(text, &created); err != nil || reply.StatusCode != http.StatusCreated {
		return &page.Refusal{Status: http.StatusUnprocessableEntity, Title: "The API refused the contact", Detail: fmt.Sprintf("%s: %s", reply.Status, text), Next: "Go back and correct the fields."}
	}
	return &page.Moved{To: "/life/" + url.PathEscape(created.ID)}
}

// maxBroken bounds the list of broken keys.
const maxBroken = 20

func (t *trying) breakEvent(ctx context.Context, _ *page.Order) error {
	key, _, err := t.e.store.poison(ctx, t.e, 2)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = slices.Insert(t.broken, 0, key)
	t.broken = t.broken[:min(len(t.broken), maxBroken)]
	return nil
}

func poisonCommand(out io.Writer) *cobra.Command {
	return onRunning(&cobra.Command{
		Use:   "poison",
		Short: "Store an event that cannot be sent",
		Long: `Store an event that cannot be sent, to try feedbox parked: it has no action, as if
written by hand. The relay parks it after a few attempts. The output sets the shell
variables KEY and EVENT:

  eval "$(feedbox-dev poison)"
  feedbox parked show "$KEY"`,
	}, func(ctx context.Context, e *endpoints) error {
		key, id, err := e.store.poison(ctx, e, 0)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, exports("KEY", key, "EVENT", id))
		return err
	})
}
