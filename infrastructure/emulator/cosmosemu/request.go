package cosmosemu

import (
	"net/http"
	"strconv"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// request is one request while it is being answered.
type request struct {
	account *account
	req     *http.Request
	writer  http.ResponseWriter
	kind    gatewayKind
	region  int // in Options.Regions
	began   time.Time
	header  http.Header // of the request
	route   route
	body    []byte     // of the request, valid until the reply is written
	buffer  []byte     // for the body of the reply
	values  [20]string // of the reply's headers; more of them are allocated

	// at is the physical partition of a request on one item, once it is known.
	at *store.Range
	// paying are the budgets that the request is charged to, with Options.Throughput.
	paying []*budget
}

// duration returns the milliseconds since the request was received.
func (x *request) duration() string {
	micros := time.Since(x.began).Round(time.Microsecond).Microseconds()
	var buf [24]byte
	text := strconv.AppendInt(buf[:0], micros/1000, 10)
	return string(append(text, '.', '0'+byte(micros/100%10), '0'+byte(micros/10%10), '0'+byte(micros%10)))
}

// keep copies a body that is valid inside a transaction only.
func (x *request) keep(body []byte) []byte {
	x.buffer = append(x.buffer, body...)
	return x.buffer
}

func (x *request) database() (*store.Database, error) {
	db, err := x.account.store.Database(x.route.db)
	if err != nil {
		return nil, x.missing("dbs", "no database %q", x.route.db)
	}
	x.route.contentPath, x.route.altContentPath = db.RID, db.Link
	return db, nil
}

// missing is the 404 for a database or a container. Its sub-status distinguishes the resource of the
// request from a parent.
func (x *request) missing(resource, format string, args ...any) *wireError {
	e := refuse(http.StatusNotFound, "Owner resource does not exist: "+format+". "+notFound, args...)
	if x.route.resource != resource {
		e.SubStatus = subOwnerNotFound
	}
	return e
}

func (x *request) container() (*store.Container, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	c, err := x.account.store.Container(db, x.route.coll)
	if err != nil {
		return nil, x.missing("colls", "no container %q in database %q", x.route.coll, x.route.db)
	}
	if rid := first(x.header, headerIntendedRID); rid != "" && rid != c.RID {
		return nil, refuse(http.StatusBadRequest, "Collection resource id in the request (%s) does not match the container's: it was deleted and made anew", rid).sub(subWrongContainer)
	}
	if x.route.resource != "colls" { // otherwise the parent is the database
		x.route.contentPath, x.route.altContentPath = c.RID, c.Link
	}
	return c, x.account.checkCreated(c)
}

func (x *request) user() (*store.Database, *store.User, error) {
	db, err := x.database()
	if err != nil {
		return nil, nil, err
	}
	u, err := x.account.store.User(db, x.route.user)
	return db, u, err
}

// target returns the container and the logical partition of a request on one item.
func (x *request) target() (*store.Container, *store.Partition, error) {
	c, err := x.container()
	if err != nil {
		return nil, nil, err
	}
	part, err := x.partition(c)
	if err == nil && part == nil {
		err = refuse(http.StatusBadRequest, "PartitionKey value must be supplied for this operation")
	}
	if err != nil {
		return c, part, err
	}
	x.at = c.Topology().Locate(part.EPK)
	return c, part, x.admit(c, *x.at)
}

// admit refuses a request to physical partitions that have used their request units. Otherwise the
// request is charged to them.
func (x *request) admit(c *store.Container, ranges ...store.Range) (err error) {
	x.paying, err = x.account.admit(c, ranges)
	return err
}

// partition reads the partition key header, which must hold a complete key; nil if there
// is none.
func (x *request) partition(c *store.Container) (*store.Partition, error) {
	key, err := keyHeader(x.header)
	if err != nil {
		return nil, err
	}
	if key == nil {
		if !hasSystemKey(c.Definition()) {
			return nil, nil
		}
		key = epk.Key{epk.Undefined()}
	}
	return wholePartition(c, key)
}

// moment returns the state that a read is served from; nil is the present. A read with a
// session token is never stale. The caller releases the moment.
func (x *request) moment(c *store.Container) *store.Moment {
	limit := x.account.options.StaleReads
	if limit <= 0 || first(x.header, headerSessionToken) != "" {
		return nil
	}
	return x.account.store.Past(c, x.account.lags.lag(limit))
}

// checkSession refuses a read whose session token asks for a state that a range has not
// reached: 404 with sub-status 1002, as the service does. rng is nil for a read over all
// ranges.
func (x *request) checkSession(c *store.Container, rng *store.Range) error {
	token := first(x.header, headerSessionToken)
	if token == "" {
		return nil
	}
	if rng != nil {
		return checkSession(token, []store.Range{*rng})
	}
	return checkSession(token, c.Topology().Ranges)
}

// queryTimeout limits the JOINs and sub-queries of a query, because those of one document may have any number
// of rows. It is below the 65 seconds after which azcosmos aborts an attempt.
const queryTimeout = 60 * time.Second

// overdue reports whether a query that starts now must end: its time is over or its client gone.
func (x *request) overdue() func() bool {
	end := time.Now().Add(queryTimeout)
	return func() bool { return x.req.Context().Err() != nil || time.Now().After(end) }
}

// stopped is the refusal of a query that ended early, nil if it did not.
func stopped(b *query.Bound) error {
	if b == nil || !b.Stopped() {
		return nil
	}
	return refuse(http.StatusRequestTimeout, "The query did not end within %v, or its client left", queryTimeout)
}

// notFound adds the id of the item to a not-found error.
func (x *request) notFound(err error) error {
	if e := asWire(err); e.Status != http.StatusNotFound || e.SubStatus != 0 {
		return err
	}
	return noItem(x.route.id)
}
