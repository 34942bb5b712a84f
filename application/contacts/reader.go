package contacts

import (
	"feedbox/application/query"
	"feedbox/domain/contact"
)

// Reader reads contacts. It is safe for concurrent use.
type Reader interface {
	query.Reader[contact.State]
	query.Pager[ContactItem]
}
