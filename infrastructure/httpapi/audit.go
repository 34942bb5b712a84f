package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/infrastructure/httpapi/auth"
)

// auditPage names the schema of an audit page, which all resources share.
const auditPage = "AuditPage"

type auditView struct {
	Items    []auditEntryView `json:"items" doc:"the entries of this page, oldest first"`
	HasMore  bool             `json:"hasMore" doc:"whether there is a next page; it may turn out to be empty"`
	NextLink string           `json:"nextLink,omitempty" doc:"address of the next page, absolute or relative to this one; absent on the last"`
}

type auditEntryView struct {
	Version   int64            `json:"version" doc:"version of the {noun} after the change"`
	At        time.Time        `json:"at" doc:"when it was changed"`
	Principal string           `json:"principal,omitempty" doc:"who changed it; anonymous where callers are not authenticated; absent if it was another caller and yours may not read who that is"`
	Events    []auditEventView `json:"events" doc:"the events that the change raised"`
}

type auditEventView struct {
	ID       uuid.UUID `json:"id" doc:"id of the event, also of its message"`
	Action   string    `json:"action" doc:"type of the event"`
	Sequence int64     `json:"sequence" doc:"position among all events of the {noun}, from 1"`
}

// Audit is GET path/{id}/audit. It answers 200 with one page of the audit trail. The route
// exists only if Options.Audit is set.
func Audit(op Operation, do func(ctx context.Context, in query.Trail) (query.AuditPage, error)) Route {
	if do == nil {
		return noFunction("Audit")
	}
	return Route{audit: true, bind: func(c *collection) route {
		return route{
			method: http.MethodGet, path: c.one("audit"),
			handle: func(w http.ResponseWriter, r *http.Request) error { return c.readAudit(w, r, do) },
			doc: c.document(op, Operation{
				ID: "read{Noun}Audit", Summary: "Read who changed {a noun}",
				Description: "One entry for each change, oldest first. Reading who the other callers are needs the permission {plural}.audit. Entries are kept for a time set by the operator, also beyond the deletion of the {noun}.",
				Reply:       "One page of the audit trail.",
			}, operation{
				parameters: pageParameters,
				replies: []replyDoc{
					{http.StatusOK, "", &viewDoc{auditPage, reflect.TypeFor[auditView](), wordsOf(c.collections)}, []string{headerContinuation, headerSession}},
				},
				problems: []int{http.StatusBadRequest, http.StatusNotFound},
			}),
		}
	}}
}

func (c *collection) readAudit(w http.ResponseWriter, r *http.Request, do func(context.Context, query.Trail) (query.AuditPage, error)) error {
	id, err := c.idOf(r)
	if err != nil {
		return err
	}
	listing, err := c.listingOf(r)
	if err != nil {
		return err
	}
	page, err := do(r.Context(), query.Trail{ID: id, PageSize: listing.PageSize, Continuation: listing.Continuation, SessionToken: listing.SessionToken})
	if err != nil {
		return err
	}
	caller := stateOf(r.Context()).principal
	mayReadOthers := caller.May(auth.Audit(c.Plural))
	view := auditView{Items: make([]auditEntryView, len(page.Entries)), HasMore: page.Continuation != ""}
	for i, entry := range page.Entries {
		view.Items[i] = viewOfEntry(entry)
		if entry.Principal != "" && entry.Principal != caller.ID && !mayReadOthers {
			view.Items[i].Principal = ""
		}
	}
	if view.HasMore {
		view.NextLink = c.setNext(w.Header(), r, listing, page.Continuation)
	}
	setState(w.Header(), "", page.SessionToken)
	writeJSON(w, http.StatusOK, mediaJSON, view)
	return nil
}

func viewOfEntry(entry query.AuditEntry) auditEntryView {
	view := auditEntryView{Version: entry.Version, At: entry.At, Principal: entry.Principal, Events: make([]auditEventView, len(entry.Events))}
	view.Principal = cmp.Or(view.Principal, "anonymous")
	for i, e := range entry.Events {
		view.Events[i] = auditEventView(e)
	}
	return view
}
