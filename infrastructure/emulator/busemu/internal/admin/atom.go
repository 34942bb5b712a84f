package admin

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// entry is one ATOM entry of a response.
type entry struct {
	path, title string
	at          time.Time
	updated     time.Time
	content     func(b *bytes.Buffer) // the description element
}

func (q *request) writeEntry(b *bytes.Buffer, e entry, root bool) {
	b.WriteString("<entry")
	if root {
		b.WriteString(` xmlns="` + nsAtom + `"`)
	}
	b.WriteString(">")
	href := q.href(e.path)
	element(b, "id", href)
	b.WriteString(`<title type="text">`)
	escape(b, e.title)
	b.WriteString("</title>")
	element(b, "published", formatTime(e.at))
	element(b, "updated", formatTime(e.updated))
	b.WriteString("<author>")
	element(b, "name", q.namespaceName())
	b.WriteString(`</author><link rel="self" href="`)
	escape(b, href)
	b.WriteString(`"></link><content type="application/xml">`)
	e.content(b)
	b.WriteString("</content></entry>")
}

// replyEntry answers with one entry.
func (q *request) replyEntry(status int, e entry) {
	var b bytes.Buffer
	q.writeEntry(&b, e, true)
	q.write(status, "application/atom+xml;type=entry;charset=utf-8", b.Bytes())
}

// replyFeed answers with a list.
func (q *request) replyFeed(title string, entries []entry) {
	var b bytes.Buffer
	b.WriteString(`<feed xmlns="` + nsAtom + `"><title type="text">`)
	escape(&b, title)
	b.WriteString("</title>")
	element(&b, "id", q.href(q.r.URL.Path))
	element(&b, "updated", formatTime(q.Broker.Now()))
	for _, e := range entries {
		q.writeEntry(&b, e, false)
	}
	b.WriteString("</feed>")
	q.write(http.StatusOK, "application/atom+xml;type=feed;charset=utf-8", b.Bytes())
}

// emptyFeed is the service's response to a GET of an entity that does not exist.
func (q *request) emptyFeed() { q.replyFeed("Publicly Listed Services", nil) }

func (q *request) write(status int, contentType string, body []byte) {
	q.w.Header().Set("Content-Type", contentType)
	q.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	q.w.WriteHeader(status)
	_, _ = q.w.Write(body) // the client has disconnected
}

// fail answers with the service's error document.
func (q *request) fail(status int, detail string) {
	var b bytes.Buffer
	b.WriteString("<Error>")
	element(&b, "Code", strconv.Itoa(status))
	element(&b, "Detail", detail)
	b.WriteString("</Error>")
	q.write(status, "application/xml; charset=utf-8", b.Bytes())
}

// failWith answers with an error of the broker.
func (q *request) failWith(err error) {
	var be *broker.Error
	if !errors.As(err, &be) {
		q.Logger.Error("admin request failed", "path", q.r.URL.Path, "error", err)
		q.fail(http.StatusInternalServerError, err.Error())
		return
	}
	var status int
	switch be.Condition {
	case broker.NotFound:
		status = http.StatusNotFound
	case broker.EntityExists:
		status = http.StatusConflict
	case broker.ResourceLimitExceeded:
		status = http.StatusForbidden
	case broker.InternalError, broker.OperationCancelled:
		status = http.StatusInternalServerError
	case broker.NotImplemented:
		status = http.StatusNotImplemented
	default:
		status = http.StatusBadRequest
	}
	q.fail(status, be.Description)
}

// done answers a DELETE.
func (q *request) done(err error) {
	if err != nil {
		q.failWith(err)
		return
	}
	q.w.WriteHeader(http.StatusOK)
}

func (q *request) href(path string) string {
	u := url.URL{Scheme: "https", Host: q.Host, Path: path, RawQuery: q.r.URL.RawQuery}
	return u.String()
}

func (q *request) namespaceName() string { return "sbemulatorns" }

// formatTime formats a time as the service does; the zero time as .NET does.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return "0001-01-01T00:00:00"
	}
	return t.UTC().Format("2006-01-02T15:04:05.9999999Z")
}

// description opens the element of an entity's description.
func description(b *bytes.Buffer, name string) func() {
	b.WriteString("<" + name + ` xmlns="` + nsServiceBus + `" xmlns:i="` + nsInstance + `">`)
	return func() { b.WriteString("</" + name + ">") }
}

// countDetails writes the counts of an entity.
func countDetails(b *bytes.Buffer, c *broker.Counts) {
	const prefix = "d2p1:"
	b.WriteString(`<CountDetails xmlns:d2p1="http://schemas.microsoft.com/netservices/2011/06/servicebus">`)
	for _, e := range []struct {
		name string
		n    int64
	}{
		{"ActiveMessageCount", c.Active},
		{"DeadLetterMessageCount", c.DeadLetter},
		{"ScheduledMessageCount", c.Scheduled},
		{"TransferMessageCount", c.Transfer},
		{"TransferDeadLetterMessageCount", c.TransferDeadLetter},
	} {
		element(b, prefix+e.name, strconv.FormatInt(e.n, 10))
	}
	b.WriteString("</CountDetails>")
}
