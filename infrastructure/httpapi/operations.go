package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"
)

// Operation documents a route in the OpenAPI document. Each field has a default for the
// kind of the route.
type Operation struct {
	// ID is unique in the document; client generators name functions by it. The schema of
	// the body has the same name, capitalized.
	ID string
	// Summary is one line without a full stop. The default of Change and Act is made of the verb:
	// "Ship an order", "Change address of an order".
	Summary string
	// Description has the details.
	Description string
	// Event is the type of the event that is stored with the change. It is mentioned before
	// the description.
	Event string
	// Reply describes the answer to a success.
	Reply string
	// Problems lists additional statuses from 400 upwards, such as 409 for an invariant of
	// this aggregate.
	Problems []int
}

// operation is the complete documentation of a route. openAPI adds the parts that all
// routes share, and the path parameters.
type operation struct {
	id, summary, description string
	body                     *bodyDoc
	parameters               []string // names in parameterDocs
	replies                  []replyDoc
	problems                 []int // statuses from 400 upwards besides commonProblems
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
	view        *viewDoc // schema of the body, nil without one
	headers     []string // names in headerDocs
}

// viewDoc is a schema that answers refer to.
type viewDoc struct {
	name string
	of   reflect.Type
	words
}

// badBody lists the statuses of every route with a body.
var badBody = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}

// changeParameters lists the parameters of every change of one aggregate.
var changeParameters = []string{requiredIfMatch, "If-None-Match", "ETag", headerIdempotencyKey, headerSession}

// badTarget lists the statuses of every change of one aggregate.
var badTarget = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusPreconditionFailed}

// document completes the documentation of a route: usual has the defaults of its kind, with
// words in braces (see words.say).
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

func (c *collection) viewOfOne(of reflect.Type) *viewDoc {
	return &viewDoc{c.say("{Noun}"), of, c.words}
}

func (doc *operation) check() error {
	var faults []error
	wrong := func(err error) { faults = append(faults, fmt.Errorf("operation %q: %w", doc.id, err)) }
	for _, status := range doc.problems {
		if problemDocs[status] == "" {
			wrong(fmt.Errorf("%d is not a supported problem status", status))
		}
	}
	if doc.body != nil {
		for _, err := range doc.body.faults {
			wrong(err)
		}
	}
	return errors.Join(faults...)
}
