package command

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"feedbox/application/mediator"
)

// Clock tells the time, such as time.Now. It is safe for concurrent use.
type Clock func() time.Time

// IDs makes ids that were never used before, such as uuid.New. It is safe for
// concurrent use.
type IDs func() uuid.UUID

// Ports are what the handlers need. Work, IDs and Now are required.
type Ports struct {
	Work UnitsOfWork
	IDs  IDs
	Now  Clock
	// Audit stores an audit entry with each commit.
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
