package page

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// maxStreams bounds the open tabs of one process.
	maxStreams = 500
	// keepAlive is the interval of comments on a stream without changes, because proxies
	// close idle connections.
	keepAlive = 15 * time.Second
)

func streamWanted(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// stream renders at once and then at the given pace, and sends each result that differs
// from the last one. It returns when the client disconnects or the page is closed.
//
//	event: process   id of this process; a page that another process rendered is stale
//	event: content   content of the view, HTML
//	event: trouble   error in place of content, text
func (p *Page) stream(w http.ResponseWriter, r *http.Request, every time.Duration, render func() ([]byte, error)) {
	if p.streams.Add(1) > maxStreams {
		p.streams.Add(-1)
		http.Error(w, "too many open tabs", http.StatusServiceUnavailable)
		return
	}
	defer p.streams.Add(-1)
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // not every server supports it
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	send := func(event string, data []byte) error {
		var message bytes.Buffer
		fmt.Fprintf(&message, "event: %s\n", event)
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			fmt.Fprintf(&message, "data: %s\n", bytes.TrimSuffix(line, []byte("\r")))
		}
		message.WriteByte('\n')
		if _, err := w.Write(message.Bytes()); err != nil {
			return err
		}
		return control.Flush()
	}
	if send("process", []byte(p.process)) != nil {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last string
	sent := time.Now()
	for {
		event := "content"
		content, err := render()
		if err != nil {
			event, content = "trouble", []byte(refusal(err).Error())
		}
		if now := event + string(content); now != last {
			if send(event, content) != nil {
				return
			}
			last, sent = now, time.Now()
		} else if time.Since(sent) >= keepAlive {
			if _, err := w.Write([]byte(": still here\n\n")); err != nil || control.Flush() != nil {
				return
			}
			sent = time.Now()
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-p.life.Done():
			return
		}
	}
}
