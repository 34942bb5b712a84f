package httpapi

import "net/http"

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
}

// replyDoc is an answer below 400.
type replyDoc struct {
	status      int
	description string
	view        any      // a value of the type of the body, nil for none
	headers     []string // names in headerDocs
}

// shapeDoc documents a body by the shape that decodes it.
func shapeDoc(name string, b shape) *bodyDoc {
	return &bodyDoc{name: name, mediaType: mediaJSON, schema: schemaOfShape(b)}
}

// badBody are the statuses of every route with a body.
var badBody = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}

// changeParameters are those of every change of one contact.
var changeParameters = []string{requiredIfMatch, "If-None-Match", "ETag", headerIdempotencyKey, headerSession}

// badTarget are the statuses of every change of one contact.
var badTarget = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusPreconditionFailed}

var createDoc = operation{
	id: "createContact", summary: "Create a contact",
	description: "The event ContactCreatedEvent is stored in the same transaction. With an Idempotency-Key the request can be repeated at any time: it creates at most one contact.",
	body:        shapeDoc("CreateContact", &createBody{}),
	parameters:  []string{headerIdempotencyKey, "If-Match", "If-None-Match", headerSession},
	replies: []replyDoc{
		{http.StatusCreated, "The contact was created.", contactView{}, []string{"Location", "ETag", headerSession}},
		{http.StatusOK, "An earlier request under the same key has created the contact; this is its state now.", contactView{}, []string{"Location", "ETag", headerSession, headerReplayed}},
	},
	problems: append([]int{http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed}, badBody...),
}

var listDoc = operation{
	id: "listContacts", summary: "List contacts",
	description: "Deleted contacts are left out. The order is not defined. Follow nextLink, or send the continuation token, until hasMore is false.",
	parameters:  []string{"pageSize", queryContinuation, headerContinuation, headerSession},
	replies: []replyDoc{
		{http.StatusOK, "One page of contacts.", pageView{}, []string{headerContinuation, headerSession}},
	},
	problems: []int{http.StatusBadRequest},
}

var readDoc = operation{
	id: "readContact", summary: "Read a contact",
	parameters: []string{"If-None-Match", "If-Match", "ETag", headerSession},
	replies: []replyDoc{
		{http.StatusOK, "The contact.", contactView{}, []string{"ETag", headerSession}},
		{http.StatusNotModified, "The contact is still in the state that If-None-Match names.", nil, []string{"ETag", headerSession}},
	},
	problems: []int{http.StatusBadRequest, http.StatusNotFound, http.StatusPreconditionFailed},
}

var deleteDoc = operation{
	id: "deleteContact", summary: "Delete a contact",
	description: "Deleting it again succeeds and changes nothing. The contact's data is erased after a time set by the operator.",
	parameters:  changeParameters,
	replies:     []replyDoc{{http.StatusNoContent, "The contact is deleted.", nil, []string{headerSession, headerReplayed}}},
	problems:    append([]int{http.StatusUnprocessableEntity}, badTarget...),
}

var patchDoc = operation{
	id: "patchContact", summary: "Change several parts of a contact",
	description: "A JSON merge patch (RFC 7396) of the contact: members that are absent stay, null removes. All changes are one transaction, with one event for each kind of change.",
	body:        &bodyDoc{name: "PatchContact", mediaType: mediaMergePatch, schema: schemaOfPatch()},
	parameters:  changeParameters,
	replies: []replyDoc{
		{http.StatusOK, "The contact after the change.", contactView{}, []string{"ETag", headerSession, headerReplayed}},
	},
	problems: append(append([]int(nil), badBody...), badTarget[1:]...),
}

var auditDoc = operation{
	id: "readAudit", summary: "Read who changed a contact",
	description: "One entry for each change, oldest first. Entries are kept for a time set by the operator, also beyond the deletion of the contact.",
	parameters:  []string{"pageSize", queryContinuation, headerContinuation, headerSession},
	replies: []replyDoc{
		{http.StatusOK, "One page of the audit trail.", auditView{}, []string{headerContinuation, headerSession}},
	},
	problems: []int{http.StatusBadRequest, http.StatusNotFound},
}

// updateDoc documents one of the updates of a part of a contact.
func updateDoc(part string, b shape) operation {
	title := map[string]string{"name": "Name", "description": "Description", "email": "Email", "company": "Company"}[part]
	return operation{
		id: "update" + title, summary: "Replace the " + part + " of a contact",
		description: "The event Contact" + title + "UpdatedEvent is stored in the same transaction. Where nothing changes nothing is stored, and the ETag stays.",
		body:        shapeDoc("Update"+title, b),
		parameters:  changeParameters,
		replies:     []replyDoc{{http.StatusNoContent, "The contact has the new " + part + ".", nil, []string{"ETag", headerSession, headerReplayed}}},
		problems:    append(append([]int(nil), badBody...), badTarget[1:]...),
	}
}
