package command

import (
	"errors"

	"feedbox/application/mediator"
)

// Ports are what the handlers need. Work, IDs and Now are required.
type Ports struct {
	Work UnitsOfWork
	IDs  IDs
	Now  Clock
	// Audit stores an audit entry with each commit. The units of work must be
	// journals then.
	Audit bool
}

// Register makes m answer every command of this package.
func Register(m *mediator.Mediator, p Ports) error {
	if p.Work == nil || p.IDs == nil || p.Now == nil {
		return errors.New("register commands: Work, IDs and Now are required")
	}
	return errors.Join(
		mediator.Register(m, p.createContact),
		mediator.Register(m, p.updateName),
		mediator.Register(m, p.updateDescription),
		mediator.Register(m, p.updateEmail),
		mediator.Register(m, p.updateCompany),
		mediator.Register(m, p.patchContact),
		mediator.Register(m, p.deleteContact),
	)
}
