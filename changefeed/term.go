package changefeed

import (
	"errors"
	"fmt"
	"strings"
)

// A term names a server, or a physical range, and after a colon the period between two of its
// failovers. A lease has three of them, and each difference has its own meaning:
//
//	loaded    Record.Term      of the server that the record was read from and is written to
//	Term      the lease's own  in which the position was read from the feed
//	page      Page.Term        of the reply
//
//	loaded A:2, Term A:1, page A:2   failed over before the record was read: the position is the
//	                                 one that the new server has. Reading continues, in a new history
//	loaded A:1, Term A:1, page A:2   failed over while the lease is owned: it is loaded again
//	loaded B:1, Term A:1, page B:1   copied to another server: the range is held
//	loaded "",  Term A:1, page A:2   the leases are on other servers than the feed: see errFailedOver
//
// Because writers of one server append to one log, a checkpoint that a server has after a failover
// covers only events that it has, too. So events that it acknowledges are never below it.

// termChanged reports whether a server or physical range has failed over. Terms of different
// ones, as after a split or merge, are not comparable.
func termChanged(before, now string) bool {
	id, term, known := strings.Cut(before, ":")
	other, next, alsoKnown := strings.Cut(now, ":")
	return known && alsoKnown && id == other && term != next
}

// foreignTo reports whether the position was read from another server than the one that replied,
// which has the leases.
func (l *Lease) foreignTo(page string) bool {
	server, _, _ := strings.Cut(l.Term, ":")
	now, _, _ := strings.Cut(page, ":")
	store, _, _ := strings.Cut(l.loaded, ":")
	return server != "" && now != "" && server != now && (store == now || store == server)
}

// Foreign reports whether the position was read from another server than the one that has the lease.
func (l *Lease) Foreign() bool { return l.foreignTo(l.loaded) }

// errReload ends an ownership.
var errReload = errors.New("the server of leases and feed has failed over. Reading continues from the checkpoint that the new one has")

// errFailedOver is no proof of a loss: a planned failover loses nothing.
var errFailedOver = errors.New("the service failed over. If that was not planned, it may have lost its last changes, and the changes that reuse their numbers " +
	"were not delivered: restart the leases from the beginning (Operator.Restart)")

// failedOver returns the report of a failover between the last read and this one.
func (l *Lease) failedOver(page string) error {
	if l.loaded != page {
		return errFailedOver
	}
	return fmt.Errorf("%w. Unless its replication is synchronous, changes that were delivered may be lost", errReload)
}

// behind returns *AheadError if the feed ends before the given LSN, which was read from it.
func (p *Page) behind(reached int64) *AheadError {
	if p.EndLSN > 0 && p.EndLSN < reached {
		return &AheadError{Position: reached, End: p.EndLSN}
	}
	return nil
}

// term returns the term of a reply: of the error, if there is one, or of the page.
func (e *AheadError) term(p *Page) string {
	if e != nil {
		return e.Term
	}
	return p.Term
}

// lose records that the changes before the position are lost; ahead returns it again.
func (l *Lease) lose(e *AheadError) {
	l.Lost = max(1, e.End)
	if e.Foreign {
		l.Lost = -1
	}
}

func (l *Lease) ahead(reached int64) *AheadError {
	return &AheadError{Position: reached, End: l.Lost, Lost: true, Foreign: l.Lost < 0}
}
