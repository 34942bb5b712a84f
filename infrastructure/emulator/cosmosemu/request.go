package cosmosemu

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// request is one request while it is being answered.
type request struct {
	srv    *Server
	req    *http.Request
	kind   entranceKind
	region int         // in Options.Regions
	header http.Header // of the request
	route  route
	body   []byte // of the request, valid until the reply is written
	buffer []byte // for the reply's body

	// The physical partition of a request on one item: set once that is known.
	at *store.Range
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
	binary       bool          // the body is not JSON
	extra        []headerValue // further headers
}

type headerValue struct{ name, value string }

func ok(status int, body []byte, charge float64) *reply {
	return &reply{status: status, body: body, charge: charge, count: -1}
}

// buffers are reused for request and reply bodies.
var buffers = sync.Pool{New: func() any { return &requestBuffers{} }}

type requestBuffers struct{ request, reply []byte }

// keepBuffer bounds what the pool holds on to.
const keepBuffer = 1 << 20

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, g gateway) {
	s.inflight.Add(1)
	defer s.inflight.Done()
	if strings.HasPrefix(r.URL.Path, controlPath) {
		s.serveControl(w, r)
		return
	}
	b, _ := buffers.Get().(*requestBuffers)
	defer b.release()
	x := &request{srv: s, req: r, kind: g.kind, region: g.region, header: r.Header, buffer: b.reply[:0]}
	answer, loss, err := x.answer(b)
	switch {
	case loss != NoLoss:
		x.lose(w, loss, answer, err)
	case err != nil:
		x.writeError(w, asWire(err))
	default:
		if x.wantsBinary() {
			answer.makeBinary()
		}
		x.write(w, answer)
		if cap(answer.body) > cap(b.reply) {
			b.reply = answer.body
		}
	}
}

// release gives the buffers back, unless they have grown too large to keep.
func (b *requestBuffers) release() {
	if cap(b.request) <= keepBuffer && cap(b.reply) <= keepBuffer {
		buffers.Put(b)
	}
}

// answer executes the request. loss tells how the reply is to get lost.
func (x *request) answer(b *requestBuffers) (a *reply, loss Loss, err error) {
	var found bool
	if x.route, found = parseRoute(x.req); !found {
		return nil, NoLoss, refuse(http.StatusMethodNotAllowed, "%s %s is not an operation of this emulator: see its UNSUPPORTED.md", x.req.Method, x.req.URL.Path)
	}
	x.srv.resolve(&x.route)
	if err := x.kind.routeItem(&x.route); err != nil { // before the signature, of which SDKs have several ideas
		return nil, NoLoss, err
	}
	if err := x.srv.auth.check(x.req, &x.route); err != nil {
		return nil, NoLoss, err
	}
	if err := x.checkRegion(); err != nil {
		return nil, NoLoss, err
	}
	if err := x.checkHeaders(); err != nil {
		return nil, NoLoss, err
	}
	if b.request, err = readBody(b.request[:0], x.req); err != nil {
		return nil, NoLoss, err
	}
	if err := x.srv.store.Err(); err != nil {
		return nil, NoLoss, err
	}
	if x.body, err = textOf(b.request); err != nil {
		return nil, NoLoss, err
	}
	if f := x.faultOf(); f != nil {
		a, err = x.answerWith(f)
		return a, f.Loss, err
	}
	a, err = handlers[x.route.op](x)
	return a, NoLoss, err
}

var (
	contentTypeJSON   = []string{"application/json"}
	contentTypeBinary = []string{"application/octet-stream"}
)

// write sends a reply. Header values share one backing array.
func (x *request) write(w http.ResponseWriter, a *reply) {
	h := w.Header()
	values := make([]string, 0, 16)
	set := func(name, value string) {
		if value != "" {
			values = append(values, value)
			h[name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
	set(replyActivityID, x.activityID())
	set(replyRequestCharge, formatCharge(a.charge))
	set(replySessionToken, a.session)
	set(replyLSN, tokenLSN(a.session))
	set(replyRangeID, tokenRange(a.session))
	set(replyETag, a.etag)
	set(replyContinuation, a.continuation)
	set(replyContentPath, x.route.contentPath)
	set(replyAltContentPath, x.route.altContentPath)
	if a.count >= 0 {
		set(replyItemCount, strconv.Itoa(a.count))
	}
	for _, v := range a.extra {
		set(v.name, v.value)
	}
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h[headerContentType] = contentTypeJSON
		if a.binary {
			h[headerContentType] = contentTypeBinary
		}
		set(headerContentLength, strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client has gone: nothing to tell it
}

func (x *request) writeError(w http.ResponseWriter, e *wireError) {
	body := e.body()
	h := w.Header()
	for name, values := range e.Headers {
		h[name] = values
	}
	h[headerContentType] = contentTypeJSON
	h[replyActivityID] = []string{x.activityID()}
	h[replyRequestCharge] = []string{"1"}
	if e.SubStatus != 0 {
		h[replySubstatus] = []string{strconv.Itoa(e.SubStatus)}
	}
	if x.at != nil && e.Status != http.StatusBadRequest && e.SubStatus == 0 { // the state that was seen
		h[replySessionToken] = []string{sessionToken(x.at.ID, x.at.LSN())}
	}
	h[headerContentLength] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(e.Status)
	_, _ = w.Write(body) // the client has gone: nothing to tell it
}

// activityID echoes the client's, or makes one.
func (x *request) activityID() string {
	if id := first(x.header, headerActivityID); id != "" {
		return id
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// keep copies a body that is valid inside a transaction only.
func (x *request) keep(body []byte) []byte {
	x.buffer = append(x.buffer, body...)
	return x.buffer
}

func (x *request) database() (*store.Database, error) {
	db, err := x.srv.store.Database(x.route.db)
	if err != nil {
		return nil, refuse(http.StatusNotFound, "Owner resource does not exist: no database %q. "+notFound, x.route.db)
	}
	x.route.contentPath, x.route.altContentPath = db.RID, db.Link
	return db, nil
}

func (x *request) container() (*store.Container, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	c, err := x.srv.store.Container(db, x.route.coll)
	if err != nil {
		return nil, refuse(http.StatusNotFound, "Owner resource does not exist: no container %q in database %q. "+notFound, x.route.coll, x.route.db)
	}
	if rid := first(x.header, headerIntendedRID); rid != "" && rid != c.RID {
		return nil, refuse(http.StatusBadRequest, "Collection resource id in the request (%s) does not match the container's: it was deleted and made anew", rid).sub(subWrongContainer)
	}
	if x.route.resource != "colls" { // else the parent is the database
		x.route.contentPath, x.route.altContentPath = c.RID, c.Link
	}
	return c, nil
}

// maxItemCount is the page size asked for; 0 if the server is to choose.
func (x *request) maxItemCount() (int, error) {
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
