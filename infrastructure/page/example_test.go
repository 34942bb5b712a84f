package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing/fstest"
	"time"

	"feedbox/infrastructure/page"
)

func Example() {
	waiting := 3
	// A real section keeps its templates in an embed.FS.
	files := fstest.MapFS{"queues.html": {Data: []byte(
		`<h1>Queues</h1><p id="orders">orders: {{count .Data}} waiting</p>
{{if .May}}<a class="button" href="{{link "queues/purge" "queue" "orders"}}">Purge</a>{{end}}`,
	)}}
	p, err := page.New(&page.Options{Prefix: "/ops", Actions: true, Sections: []page.Section{{
		Path: "queues", Title: "Queues", Templates: files,
		Views: []page.View{{
			Template: "queues.html", Every: time.Second,
			Data: func(*http.Request) (any, error) { return waiting, nil },
		}},
		Acts: []page.Act{{
			Path: "purge", Title: "Purge a queue", Verb: "Purge", Danger: true,
			Preview: func(_ context.Context, v url.Values) (*page.Preview, error) {
				return &page.Preview{
					Summary: fmt.Sprintf("%d messages of the queue %s are deleted.", waiting, v.Get("queue")),
					Stamp:   fmt.Sprint(waiting), Typed: v.Get("queue"),
				}, nil
			},
			Do: func(_ context.Context, o *page.Order) error {
				waiting = 0
				o.Say("Done: the queue is empty.")
				o.Next("See the queues", "/queues")
				return nil
			},
		}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	reply := httptest.NewRecorder()
	p.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "http://localhost/ops/queues", nil))
	fmt.Println(reply.Code, reply.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
