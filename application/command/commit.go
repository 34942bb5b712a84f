package command

import (
	"context"

	"feedbox/application/query"
	"feedbox/domain/contact"
)

// commit commits work, with an audit entry if there is something to enter.
func (p Ports) commit(ctx context.Context, work UnitOfWork, c *contact.Contact, sender Sender) (Receipt, error) {
	if commit, changed := c.Pending(); changed && p.Audit {
		entry := query.AuditEntry{ContactID: c.ID(), Version: commit.State.Version, At: p.Now(), Principal: sender.Principal}
		for _, e := range commit.Events {
			meta := e.Metadata()
			entry.Events = append(entry.Events, query.AuditedEvent{ID: meta.ID, Action: e.Action(), Sequence: meta.Sequence})
		}
		if err := work.NoteAudit(entry); err != nil {
			return Receipt{}, err
		}
	}
	return work.Commit(ctx)
}
