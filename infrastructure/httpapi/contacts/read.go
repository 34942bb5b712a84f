package contacts

import (
	"context"

	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/infrastructure/httpapi"
)

type itemView struct {
	ID          uuid.UUID `json:"id" doc:"id of the contact"`
	Email       *string   `json:"email" doc:"e-mail address, or null"`
	FullName    string    `json:"fullName" doc:"first and last name"`
	CompanyName string    `json:"companyName" doc:"name of the company"`
	ETag        string    `json:"etag" doc:"state of the contact, for If-Match"`
}

func (r routes) read(ctx context.Context, in query.Read) (httpapi.Found[contactView], error) {
	read, err := mediator.Send(ctx, r.Mediator, contacts.ReadContact{Read: in})
	if err != nil {
		return httpapi.Found[contactView]{}, err
	}
	return httpapi.Found[contactView]{View: viewOf(read.Contact), ETag: read.ETag, SessionToken: read.SessionToken}, nil
}

func (r routes) list(ctx context.Context, in httpapi.Listing) (query.Page[itemView], error) {
	page, err := mediator.Send(ctx, r.Mediator, contacts.ReadContacts(in))
	if err != nil {
		return query.Page[itemView]{}, err
	}
	items := make([]itemView, len(page.Items))
	for i, item := range page.Items {
		items[i] = itemView(item)
	}
	return query.Page[itemView]{Items: items, Continuation: page.Continuation, SessionToken: page.SessionToken}, nil
}

func (r routes) audit(ctx context.Context, in query.Trail) (query.AuditPage, error) {
	return mediator.Send(ctx, r.Mediator, contacts.ReadAudit{Trail: in})
}
