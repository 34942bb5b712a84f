// Package doctor examines a database of PostgreSQL for an operator.
package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/store/postgres"
)

// Doctor examines a database. It only reads, and is safe for concurrent use.
type Doctor struct{ DB *postgres.DB }

// Examine implements operator.StoreDoctor.
func (d Doctor) Examine(process operator.Process, step func(operator.Examination) bool) operator.Unusable {
	if !step(d.examineServer) {
		checks := []string{"rights", "clock", "open transactions", "events"}
		if process == operator.ProcessRelay {
			checks = append(checks, "leases of all processors")
		}
		step(operator.Unexamined("database", checks...))
		return operator.AllUnusable("database")
	}
	step(func(ctx context.Context) []operator.Finding { return d.examineRights(ctx, process) })
	step(d.examineClock)
	step(d.examineOpenTransactions)
	step(d.examineSize)
	if process == operator.ProcessRelay { // the API may not read leases
		step(d.examineUnusedLeases)
	}
	return nil
}

// Describe implements operator.StoreDoctor.
func (Doctor) Describe(err error) string { return operator.OneLine(err) }

// Advise implements operator.StoreDoctor.
func (d Doctor) Advise(context.Context, error, operator.Part) string {
	return "check that the user of FEEDBOX_POSTGRES_URL may use the tables: feedbox migrate --print-roles has its rights"
}

// examineServer makes the same checks as the start of a process.
func (d Doctor) examineServer(ctx context.Context) []operator.Finding {
	const check = "database"
	s, err := d.DB.State(ctx)
	if err != nil {
		return []operator.Finding{operator.Fine(check, "%v", err).Is(operator.FindingFailed, "check FEEDBOX_POSTGRES_URL, the network and the server's pg_hba.conf")}
	}
	var found []operator.Finding
	for _, wrong := range s.Faults() {
		found = append(found, operator.Fine(check, "%s", wrong.Problem).Is(operator.FindingFailed, wrong.Next))
	}
	if len(found) == 0 {
		how := ""
		if s.Pooled {
			how = ", through a pooler"
		}
		if s.Commit == "off" || s.Commit == "local" {
			how += fmt.Sprintf("; its default is synchronous_commit = %s, and commits of Feedbox use on", s.Commit)
		}
		f := operator.Fine(check, "PostgreSQL %d, schema version %d%s", s.Server/10000, s.Schema, how)
		if s.Blind {
			f = operator.Fine(check, "the role may not ask for the server's timeline: a failover is not noticed, and may lose events").
				Is(operator.FindingWarning, "GRANT EXECUTE ON FUNCTION pg_control_system(), pg_current_wal_insert_lsn(), pg_walfile_name(pg_lsn) TO <user>")
		}
		found = append(found, f)
	}
	return found
}

// examineRights reports rights that the role of the process lacks, or has without need. The latter
// is a warning, because a role for everything works.
func (d Doctor) examineRights(ctx context.Context, process operator.Process) []operator.Finding {
	const check = "rights"
	missing, surplus, err := d.DB.Rights(ctx, string(process))
	switch {
	case err != nil:
		return []operator.Finding{operator.Fine(check, "%v", err).Is(operator.FindingUnknown, "")}
	case len(missing) > 0:
		return []operator.Finding{operator.Fine(check, "the role lacks %d", len(missing)).Is(operator.FindingFailed, strings.Join(missing, "; "))}
	case len(surplus) > 0:
		return []operator.Finding{operator.Fine(check, "more than the %s needs: %s", process, strings.Join(surplus, ", ")).
			Is(operator.FindingWarning, "connect as the role feedbox_"+string(process)+" of feedbox migrate --print-roles")}
	}
	return []operator.Finding{operator.Fine(check, "exactly those that the %s needs", process)}
}

func (d Doctor) examineClock(ctx context.Context) []operator.Finding {
	began := time.Now()
	now, err := d.DB.Clock(ctx)
	if err != nil {
		return []operator.Finding{operator.Fine("clock", "%v", err).Is(operator.FindingUnknown, "")}
	}
	ahead := began.Add(time.Since(began) / 2).Sub(now)
	return []operator.Finding{operator.Clock(ahead, "server", "keep the clocks with NTP: ages that are shown are off by this much")}
}

// longTransaction is the age from which a transaction that holds back the feed is a warning.
const longTransaction = 10 * time.Second

// examineOpenTransactions reports the oldest transaction that has written something, because it
// holds back all later events.
func (d Doctor) examineOpenTransactions(ctx context.Context) []operator.Finding {
	const check = "open transactions"
	oldest, err := d.DB.OldestTransaction(ctx)
	switch {
	case err != nil:
		return []operator.Finding{operator.Fine(check, "%v", err).Is(operator.FindingUnknown, "")}
	case oldest.Who == "":
		return []operator.Finding{operator.Fine(check, "none that writes")}
	}
	lasted := oldest.Age.Round(time.Millisecond).String()
	if oldest.AtLeast {
		lasted = "at least " + lasted + " (GRANT pg_monitor TO <user> shows the time)"
	}
	f := operator.Fine(check, "the oldest that writes has lasted %s: %s", lasted, oldest.Who)
	if oldest.Age > longTransaction {
		f = f.Is(operator.FindingWarning, fmt.Sprintf("it holds all events back that were committed after it began: end it (%s), and set idle_in_transaction_session_timeout", oldest.End))
	}
	return []operator.Finding{f}
}

func (d Doctor) examineSize(ctx context.Context) []operator.Finding {
	const check = "events"
	size, err := d.DB.Size(ctx)
	if err != nil {
		return []operator.Finding{operator.Fine(check, "%v", err).Is(operator.FindingUnknown, "")}
	}
	f := operator.Fine(check, "about %d rows and %d dead ones in %d MB", size.Rows, size.Dead, size.Bytes>>20)
	if size.Dead > 10_000 && size.Dead > size.Rows {
		f = f.Is(operator.FindingWarning, "autovacuum does not keep up: look at its settings, and at transactions that are open for long")
	}
	return []operator.Finding{f}
}

// examineUnusedLeases names processors that hold back the deletion of expired events for ever.
func (d Doctor) examineUnusedLeases(ctx context.Context) []operator.Finding {
	const check = "leases of all processors"
	unused, expired, err := d.DB.UnusedLeases(ctx)
	if err != nil {
		return []operator.Finding{operator.Fine(check, "%v", err).Is(operator.FindingUnknown, "")}
	}
	var found []operator.Finding
	for _, u := range unused {
		since := "at an unknown time"
		if !u.Written.IsZero() {
			since = u.Written.UTC().Format(time.DateTime) + " UTC"
		}
		found = append(found, operator.Fine(check, "processor %s has %d, last written %s; %d expired events are in the table", u.Processor, u.Leases, since, expired).
			Is(operator.FindingWarning, "start its relay; if it is not used any more, no event that it has yet to handle is ever deleted: "+u.Delete))
	}
	if found == nil {
		found = append(found, operator.Fine(check, "all in use"))
	}
	return found
}
