package cosmosemu

import (
	"net/http"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/internal/hooks"
)

// dispatcher checks each request, asks the hooks for a fault and calls the handler of
// the operation.
type dispatcher struct {
	account *account
	auth    authenticator
	hooks   hooks.List[Call, Fault]
	done    chan struct{} // closed by Close, to release calls that a fault holds
}

func (d *dispatcher) init(a *account) {
	d.account, d.done = a, make(chan struct{})
	d.auth.init(a)
}

// buffers are reused for request and reply bodies.
var buffers = sync.Pool{New: func() any { return &requestBuffers{} }}

type requestBuffers struct{ request, reply []byte }

// maxPooledBuffer limits the size of buffers in the pool, so that one large request does
// not hold its memory for ever.
const maxPooledBuffer = 1 << 20

// release returns the buffers to the pool, unless they have grown too large to keep.
func (b *requestBuffers) release() {
	if cap(b.request) <= maxPooledBuffer && cap(b.reply) <= maxPooledBuffer {
		buffers.Put(b)
	}
}

// serve answers one request.
func (d *dispatcher) serve(w http.ResponseWriter, r *http.Request, kind gatewayKind, region int) {
	b, _ := buffers.Get().(*requestBuffers)
	defer b.release()
	x := &request{
		account: d.account, req: r, writer: w, kind: kind, region: region, began: time.Now(), header: r.Header, buffer: b.reply[:0],
	}
	answer, loss, err := d.answer(x, b)
	switch {
	case loss != NoLoss:
		d.lose(w, x, loss, answer, err)
	case err != nil:
		discardBody(w, r)
		x.writeError(w, asWire(err))
	default:
		if wantsBinary(&x.route, x.header) {
			answer.makeBinary()
		}
		answer.write(w, x)
		if cap(answer.body) > cap(b.reply) {
			b.reply = answer.body
		}
	}
}

// answer executes the request. loss is the way in which its reply must get lost.
func (d *dispatcher) answer(x *request, b *requestBuffers) (a *reply, loss Loss, err error) {
	var found bool
	if x.route, found = parseRoute(x.req); !found {
		return nil, NoLoss, refuse(http.StatusMethodNotAllowed, "%s %s is not an operation of this emulator: see its UNSUPPORTED.md", x.req.Method, x.req.URL.Path)
	}
	d.account.resolve(&x.route)
	// The id is checked before the signature because SDKs sign unusual ids in
	// different ways.
	if err := x.kind.checkItemID(&x.route); err != nil {
		return nil, NoLoss, err
	}
	if err := d.auth.check(x.req, &x.route); err != nil {
		return nil, NoLoss, err
	}
	if err := d.checkRegion(x); err != nil {
		return nil, NoLoss, err
	}
	if err := checkHeaders(x.header, x.route.op); err != nil {
		return nil, NoLoss, err
	}
	if b.request, err = readBody(b.request[:0], x.writer, x.req); err != nil {
		return nil, NoLoss, err
	}
	if err := d.account.store.Err(); err != nil {
		return nil, NoLoss, err
	}
	if x.body, err = textOf(b.request); err != nil {
		return nil, NoLoss, err
	}
	if f := d.fault(x); f != nil {
		a, err = d.answerWith(x, f)
		return a, f.Loss, err
	}
	a, err = x.handle()
	return a, NoLoss, err
}

// handle executes the operation and charges its request units.
func (x *request) handle() (*reply, error) {
	a, err := handlers[x.route.op](x)
	charge := float64(errorCharge)
	if err == nil {
		charge = a.charge
	}
	x.account.budgets.pay(x.paying, charge)
	return a, err
}

// checkRegion refuses a request in a removed region, and a write in a region that accepts none.
// The sub-statuses make an SDK read the account again and try another region. The account can
// be read in the first region in any case, because the global address resolves to it.
func (d *dispatcher) checkRegion(x *request) *wireError {
	removed, writes := d.account.regions.state(x.region, d.account.options.MultipleWriteRegions)
	switch {
	case removed && (x.region != 0 || x.route.op != OpReadAccount):
		return refuse(http.StatusForbidden, "The database account is not found in this region: %s was removed", d.account.options.Regions[x.region]).sub(subAccountNotFound)
	case writes || !x.route.op.writes():
		return nil
	}
	return refuse(http.StatusForbidden, "The requested operation cannot be performed at this region: %s takes no writes", d.account.options.Regions[x.region]).sub(subWriteForbidden)
}
