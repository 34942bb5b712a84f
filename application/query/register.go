package query

import (
	"errors"

	"feedbox/application/mediator"
)

// Ports are what the handlers need. Contacts is required.
type Ports struct {
	Contacts ContactReader
	// Audit reads the audit trail. Without it ReadAudit is not answered.
	Audit AuditReader
}

// Register makes m answer the queries of this package.
func Register(m *mediator.Mediator, p Ports) error {
	if p.Contacts == nil {
		return errors.New("register queries: Contacts is required")
	}
	err := errors.Join(
		mediator.Register(m, p.readContact),
		mediator.Register(m, p.readContacts),
	)
	if p.Audit != nil {
		err = errors.Join(err, mediator.Register(m, p.readAudit))
	}
	return err
}
