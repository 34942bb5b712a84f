package query

import (
	"errors"

	"feedbox/application/mediator"
)

// Ports are what the handlers need. All are required.
type Ports struct {
	Contacts ContactReader
}

// Register makes m answer every query of this package.
func Register(m *mediator.Mediator, p Ports) error {
	if p.Contacts == nil {
		return errors.New("register queries: Contacts is required")
	}
	return errors.Join(
		mediator.Register(m, p.readContact),
		mediator.Register(m, p.readContacts),
	)
}
