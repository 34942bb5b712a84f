package cosmosemu

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxBody is the largest request body read: the service's limit of 2 MB for an
// item and for a batch.
const maxBody = 2 << 20

// exchange is one request while it is being answered.
type exchange struct {
	srv    *Server
	req    *http.Request
	quirks bool        // of the routing gateway
	header http.Header // of the request
	route  route
	body   []byte // of the request, valid until the reply is written
	buffer []byte // for the reply's body
}

// reply is a successful answer.
type reply struct {
	status       int
	body         []byte
	charge       float64 // request units
	etag         string
	session      string // session token
	continuation string
	count        int           // of items in a feed, -1 for none
	extra        []headerValue // further headers
}

type headerValue struct{ name, value string }

func ok(status int, body []byte, charge float64) *reply {
	return &reply{status: status, body: body, charge: charge, count: -1}
}

// buffers are reused for request and reply bodies.
var buffers = sync.Pool{New: func() any { return &exchangeBuffers{} }}

type exchangeBuffers struct{ request, reply []byte }

// keepBuffer bounds what the pool holds on to.
const keepBuffer = 1 << 20

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, quirks bool) {
	s.inflight.Add(1)
	defer s.inflight.Done()
	if strings.HasPrefix(r.URL.Path, controlPath) {
		s.serveControl(w, r)
		return
	}
	b, _ := buffers.Get().(*exchangeBuffers)
	defer b.release()
	x := &exchange{srv: s, req: r, quirks: quirks, header: r.Header, buffer: b.reply[:0]}
	answer, loss, err := x.answer(b)
	switch {
	case loss != NoLoss:
		x.lose(w, loss, answer, err)
	case err != nil:
		x.writeError(w, asWire(err))
	default:
		x.write(w, answer)
		if cap(answer.body) > cap(b.reply) {
			b.reply = answer.body
		}
	}
}

// release gives the buffers back, unless they have grown too large to keep.
func (b *exchangeBuffers) release() {
	if cap(b.request) <= keepBuffer && cap(b.reply) <= keepBuffer {
		buffers.Put(b)
	}
}

// answer executes the request. loss tells how the reply is to get lost.
func (x *exchange) answer(b *exchangeBuffers) (a *reply, loss Loss, err error) {
	var found bool
	if x.route, found = parseRoute(x.req); !found {
		return nil, NoLoss, refuse(http.StatusMethodNotAllowed, "%s %s is not an operation of this emulator: see its UNSUPPORTED.md", x.req.Method, x.req.URL.Path)
	}
	if x.quirks {
		if err := routingQuirk(&x.route); err != nil {
			return nil, NoLoss, err
		}
	}
	if err := x.srv.auth.check(x.req, &x.route); err != nil {
		return nil, NoLoss, err
	}
	if b.request, err = readBody(b.request[:0], x.req); err != nil {
		return nil, NoLoss, err
	}
	if err := x.srv.store.Damaged(); err != nil {
		return nil, NoLoss, err
	}
	x.body = b.request
	if f := x.srv.judge(x); f != nil {
		a, err = x.suffer(f)
		return a, f.Loss, err
	}
	a, err = handlers[x.route.op](x)
	return a, NoLoss, err
}

func readBody(dst []byte, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return dst, refuse(http.StatusRequestEntityTooLarge, "Request size is too large: %d bytes, at most %d", r.ContentLength, maxBody)
	}
	if n := int(r.ContentLength); n > 0 {
		if cap(dst) < n {
			dst = make([]byte, 0, n)
		}
		if _, err := io.ReadFull(r.Body, dst[:n]); err != nil {
			return dst, refuse(http.StatusBadRequest, "The request body ended early: %v", err)
		}
		return dst[:n], nil
	}
	if r.ContentLength == 0 {
		return dst, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return dst, refuse(http.StatusRequestEntityTooLarge, "Request size is too large: at most %d bytes", maxBody)
	}
	if err != nil {
		return dst, refuse(http.StatusBadRequest, "The request body ended early: %v", err)
	}
	return append(dst, body...), nil
}

var contentTypeJSON = []string{"application/json"}

// write sends a reply. Header values share one backing array.
func (x *exchange) write(w http.ResponseWriter, a *reply) {
	h := w.Header()
	values := make([]string, 0, 8)
	set := func(name, value string) {
		if value != "" {
			values = append(values, value)
			h[name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
	set(headerActivityID, x.activityID())
	set(headerRequestCharge, formatCharge(a.charge))
	set(headerSessionToken, a.session)
	set(headerETag, a.etag)
	set(headerContinuation, a.continuation)
	if a.count >= 0 {
		set(headerItemCount, strconv.Itoa(a.count))
	}
	for _, v := range a.extra {
		set(v.name, v.value)
	}
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h[headerContentType] = contentTypeJSON
		set(headerContentLength, strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client has gone: nothing to tell it
}

func (x *exchange) writeError(w http.ResponseWriter, e *wireError) {
	body := e.body()
	h := w.Header()
	for name, values := range e.Headers {
		h[name] = values
	}
	h[headerContentType] = contentTypeJSON
	h[headerActivityID] = []string{x.activityID()}
	h[headerRequestCharge] = []string{"1"}
	if e.SubStatus != 0 {
		h[headerSubstatus] = []string{strconv.Itoa(e.SubStatus)}
	}
	h[headerContentLength] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(e.Status)
	_, _ = w.Write(body) // the client has gone: nothing to tell it
}

// activityID echoes the client's, or makes one.
func (x *exchange) activityID() string {
	if id := first(x.header, headerActivityID); id != "" {
		return id
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// keep copies a body that is valid inside a transaction only.
func (x *exchange) keep(body []byte) []byte {
	x.buffer = append(x.buffer, body...)
	return x.buffer
}

func (x *exchange) database() (*store.Database, error) {
	db, err := x.srv.store.Database(x.route.db)
	if err != nil {
		return nil, refuse(http.StatusNotFound, "Owner resource does not exist: no database %q", x.route.db)
	}
	return db, nil
}

func (x *exchange) container() (*store.Container, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	c, err := x.srv.store.Container(db, x.route.coll)
	if err != nil {
		return nil, refuse(http.StatusNotFound, "Owner resource does not exist: no container %q in database %q", x.route.coll, x.route.db)
	}
	return c, nil
}

// maxItemCount is the page size asked for; 0 if the server is to choose.
func (x *exchange) maxItemCount() (int, error) {
	text := first(x.header, headerMaxItemCount)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n == 0 {
		return 0, refuse(http.StatusBadRequest, "x-ms-max-item-count is %q: it must be -1 or a positive number", text)
	}
	return max(n, 0), nil
}
