package contacts

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
)

// Noun is what people call a contact.
const Noun = "contact"

// namespace keeps derived contact ids apart from all other derived ids.
var namespace = uuid.MustParse("5cb6a1a6-6a19-4ac5-a1f9-70b0f4bfe9c7")

// CommandPorts are what the commands need. Work, IDs and Now are required.
type CommandPorts struct {
	Work command.UnitsOfWork[*contact.Contact]
	IDs  command.IDs
	Now  command.Clock
	// Audit stores an audit entry with each commit.
	Audit bool
}

// commands answers the commands.
type commands struct {
	command.Ports[*contact.Contact]
}

// RegisterCommands makes m answer every command of this package.
func RegisterCommands(m *mediator.Mediator, p CommandPorts) error {
	c := &commands{command.Ports[*contact.Contact]{Work: p.Work, IDs: p.IDs, Now: p.Now, Audit: p.Audit, Noun: Noun, Namespace: namespace}}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("register contacts: %w", err)
	}
	return errors.Join(
		mediator.Register(m, c.createContact),
		mediator.Register(m, c.updateName),
		mediator.Register(m, c.updateDescription),
		mediator.Register(m, c.updateEmail),
		mediator.Register(m, c.updateCompany),
		mediator.Register(m, c.patchContact),
		mediator.Register(m, c.deleteContact),
	)
}

// QueryPorts are what the queries need. Contacts is required.
type QueryPorts struct {
	Contacts Reader
	// Audit reads the audit trail. Without it ReadAudit is not answered.
	Audit query.AuditReader
}

// RegisterQueries makes m answer the queries of this package.
func RegisterQueries(m *mediator.Mediator, p QueryPorts) error {
	if p.Contacts == nil {
		return errors.New("register contacts: QueryPorts.Contacts is required")
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
