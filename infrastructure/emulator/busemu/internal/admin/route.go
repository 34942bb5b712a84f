package admin

import (
	"net/http"
	"strconv"
	"strings"
)

// request is a request to the admin API with its parsed path.
type request struct {
	*Handler
	w http.ResponseWriter
	r *http.Request

	entity, subscription, rule string // as far as the path has them
	list                       bool   // the path ends in a collection
	manage                     bool   // the token grants Manage
}

// ServeHTTP finds the resource of a path (azservicebus internal/atom):
//
//	/$namespaceinfo
//	/$Resources/Queues, /$Resources/Topics           lists
//	/{queue or topic}
//	/{topic}/Subscriptions[/{subscription}]
//	/{topic}/Subscriptions/{subscription}/Rules[/{rule}]
//
// Entity names may contain slashes.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	q := &request{Handler: h, w: w, r: r}
	if !q.authenticate() {
		return
	}
	if err := h.Admit(); err != nil {
		q.fail(http.StatusServiceUnavailable, err.Description)
		return
	}
	path := strings.Trim(r.URL.Path, "/")
	switch strings.ToLower(path) {
	case "$namespaceinfo":
		q.only(http.MethodGet, q.namespaceInfo)
		return
	case "$resources/queues":
		q.only(http.MethodGet, q.listQueues)
		return
	case "$resources/topics":
		q.only(http.MethodGet, q.listTopics)
		return
	case "":
		q.fail(http.StatusNotFound, "No such resource.")
		return
	}
	q.parsePath(path)
	switch {
	case q.subscription != "" && (q.list || q.rule != ""):
		q.rules()
	case q.subscription != "":
		q.subscriptions()
	case q.list:
		q.only(http.MethodGet, q.listSubscriptions)
	default:
		q.entities()
	}
}

// parsePath reads entity, subscription and rule from a path.
func (q *request) parsePath(path string) {
	parts := strings.Split(path, "/")
	i := 1
	for i < len(parts) && !strings.EqualFold(parts[i], "subscriptions") {
		i++
	}
	q.entity = strings.Join(parts[:i], "/")
	switch rest := parts[min(i+1, len(parts)):]; {
	case i == len(parts):
	case len(rest) == 0:
		q.list = true
	case len(rest) == 1:
		q.subscription = rest[0]
	case strings.EqualFold(rest[1], "rules"):
		q.subscription = rest[0]
		q.list = len(rest) == 2
		q.rule = strings.Join(rest[2:], "/")
	default:
		q.entity = path
	}
}

func (q *request) only(method string, handle func()) {
	if q.r.Method != method {
		q.fail(http.StatusMethodNotAllowed, q.r.Method+" is not allowed here.")
		return
	}
	handle()
}

// page applies $skip and $top to a list.
func page[T any](q *request, all []T) []T {
	query := q.r.URL.Query()
	skip, _ := strconv.Atoi(query.Get("$skip"))
	all = all[min(max(skip, 0), len(all)):]
	top, err := strconv.Atoi(query.Get("$top"))
	if err != nil || top <= 0 {
		top = 100 // the service's page size
	}
	return all[:min(top, len(all))]
}

// entities serves queues and topics, which share one name space.
func (q *request) entities() {
	b := q.Broker
	_, queueErr := b.Queue(q.entity)
	_, topicErr := b.Topic(q.entity)
	switch q.r.Method {
	case http.MethodGet:
		switch {
		case queueErr == nil:
			q.getQueue()
		case topicErr == nil:
			q.getTopic()
		default:
			q.emptyFeed()
		}
	case http.MethodPut:
		if !q.may("Authorization failed for specified action: Manage,EntityWrite.") {
			return
		}
		q.putEntity()
	case http.MethodDelete:
		if !q.may("Authorization failed for specified action: Manage,EntityDelete.") {
			return
		}
		if topicErr == nil {
			q.done(b.DeleteTopic(q.r.Context(), q.entity))
			return
		}
		q.done(b.DeleteQueue(q.r.Context(), q.entity))
	default:
		q.fail(http.StatusMethodNotAllowed, q.r.Method+" is not allowed here.")
	}
}

// putEntity creates or, with If-Match, updates the entity in the body.
func (q *request) putEntity() {
	content, ok := q.readContent()
	if !ok {
		return
	}
	if d := content.child("QueueDescription"); d != nil {
		q.putQueue(d)
		return
	}
	if d := content.child("TopicDescription"); d != nil {
		q.putTopic(d)
		return
	}
	q.fail(http.StatusBadRequest, "The entry's content is neither a QueueDescription nor a TopicDescription.")
}

// update reports whether a PUT changes an existing entity.
func (q *request) update() bool { return q.r.Header.Get("If-Match") != "" }

// readContent reads the content element of the entry in the body.
func (q *request) readContent() (*xmlNode, bool) {
	entry, err := parseXML(q.r.Body)
	if err != nil {
		q.fail(http.StatusBadRequest, "The request body is not XML: "+err.Error())
		return nil, false
	}
	content := entry.child("content")
	if content == nil {
		q.fail(http.StatusBadRequest, "The request body is not an ATOM entry with content.")
		return nil, false
	}
	return content, true
}
