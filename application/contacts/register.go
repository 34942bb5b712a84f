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

// Noun names a contact in faults.
const Noun = "contact"

// namespace separates derived contact ids from derived ids of other kinds.
var namespace = uuid.MustParse("5cb6a1a6-6a19-4ac5-a1f9-70b0f4bfe9c7")

// UnitsOfWork begins the units of work of contacts.
type UnitsOfWork = command.UnitsOfWork[*contact.Contact]

// CommandPorts are the ports of the commands. Work, IDs and Now are required.
type CommandPorts struct {
	Work UnitsOfWork
	IDs  command.IDs
	Now  command.Clock
	// Audit stores an audit entry with each commit.
	Audit bool
}

// commands handles the commands.
type commands struct {
	command.Service[*contact.Contact]
}

// RegisterCommands registers the handler of every command of this package with m.
func RegisterCommands(m *mediator.Mediator, p CommandPorts) error {
	c := &commands{command.Service[*contact.Contact]{Work: p.Work, IDs: p.IDs, Now: p.Now, Audit: p.Audit, Noun: Noun, Namespace: namespace}}
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

// QueryPorts are the ports of the queries. Contacts is required.
type QueryPorts struct {
	Contacts Reader
	// Audit reads the audit trail. If it is nil, ReadAudit has no handler.
	Audit query.AuditReader
}

// RegisterQueries registers the handlers of the queries of this package with m.
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
