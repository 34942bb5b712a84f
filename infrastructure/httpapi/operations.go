package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"
)

// Operation is what the OpenAPI document says of a route beyond what follows from its
// kind. Each field has a default that says what all routes of the kind do.
type Operation struct {
	// ID is unique in the document; client generators name functions by it. The schema of
	// the body has the same name, with a capital.
	ID string
	// Summary is one line without a full stop. Change and Act have no default.
	Summary string
	// Description goes on from there.
	Description string
	// Event is the type of the event that is stored with the change. Named, it is
	// mentioned before the description.
	Event string
	// Reply says what the answer to a success is.
	Reply string
	// Problems are statuses from 400 upwards that this route may answer besides those of
	// all of its kind, such as 409 where an invariant stands in the way.
	Problems []int
}

// operation documents a route. What follows from the route itself (path
// parameters, statuses every route has) is added by the document.
type operation struct {
	id, summary, description string
	body                     *bodyDoc
	parameters               []string // names in parameterDocs
	replies                  []replyDoc
	problems                 []int // statuses from 400 up that not every route has
}

type bodyDoc struct {
	name, mediaType string
	schema          object
	faults          []error
}

// replyDoc is an answer below 400.
type replyDoc struct {
	status      int
	description string
	view        *viewDoc // of the body, nil for none
	headers     []string // names in headerDocs
}

// viewDoc is a schema that answers refer to.
type viewDoc struct {
	name string
	of   reflect.Type
	words
}

// badBody are the statuses of every route with a body.
var badBody = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}

// changeParameters are those of every change of one aggregate.
var changeParameters = []string{requiredIfMatch, "If-None-Match", "ETag", headerIdempotencyKey, headerSession}

// badTarget are the statuses of every change of one aggregate.
var badTarget = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusPreconditionFailed}

// document completes the description of a route: usual is what its kind says, with words
// in braces (see words.say).
func (c *collection) document(op, usual Operation, doc operation) operation {
	doc.id = cmp.Or(op.ID, c.say(usual.ID))
	doc.summary = cmp.Or(op.Summary, c.say(usual.Summary))
	doc.description = cmp.Or(op.Description, c.say(usual.Description))
	if op.Event != "" {
		doc.description = "The event " + op.Event + " is stored in the same transaction. " + doc.description
	}
	if doc.body != nil {
		doc.body.name = title(doc.id)
	}
	doc.replies[0].description = cmp.Or(op.Reply, c.say(usual.Reply))
	for i := range doc.replies {
		doc.replies[i].description = c.say(doc.replies[i].description)
	}
	doc.problems = append(append([]int(nil), op.Problems...), doc.problems...)
	return doc
}

// viewOfOne is the schema of one aggregate.
func (c *collection) viewOfOne(of reflect.Type) *viewDoc {
	return &viewDoc{c.say("{Noun}"), of, c.words}
}

// check reports what the document cannot hold.
func (doc *operation) check() error {
	var faults []error
	wrong := func(err error) { faults = append(faults, fmt.Errorf("operation %q: %w", doc.id, err)) }
	if doc.summary == "" {
		wrong(errors.New("there is no Summary"))
	}
	for _, status := range doc.problems {
		if problemDocs[status] == "" {
			wrong(fmt.Errorf("%d is not a status of problems here", status))
		}
	}
	if doc.body != nil {
		for _, err := range doc.body.faults {
			wrong(err)
		}
	}
	return errors.Join(faults...)
}
