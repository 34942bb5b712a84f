package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts a server that replicates from p, until the test ends. It is asynchronous unless p
// has synchronous_standby_names.
func (p *Postgres) Standby(t TB) *Postgres {
	t.Helper()
	s := newPostgres(t)
	s.Follow(t, p)
	return s
}

// Follow replaces the data of a server that does not run by those of primary, and starts it as a
// standby. It returns when the standby receives the log.
func (p *Postgres) Follow(t TB, primary *Postgres) {
	t.Helper()
	if err := os.RemoveAll(p.data()); err != nil {
		t.Fatal(err)
	}
	if out, err := p.command("pg_basebackup", "-D", p.data(), "-d", primary.url("postgres"), "-X", "stream", "-c", "fast", "-R").CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	p.Start(t)
	p.database = primary.database
	for deadline := time.Now().Add(startLimit); len(primary.senders(t)) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the standby does not replicate")
		}
	}
}

// Stall stops the replication to all standbys, so that they lag until the server is killed.
func (p *Postgres) Stall(t TB) {
	t.Helper()
	for _, pid := range p.senders(t) {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
}

// Kill kills the server and all its processes with kill -9. A process that survived would
// prevent the next server from opening the data.
func (p *Postgres) Kill(t TB) {
	t.Helper()
	if p.running == nil || p.running.Process == nil {
		return
	}
	_ = p.running.Process.Kill() // so that it starts no more processes
	<-p.ended
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		rest := p.processes()
		for _, pid := range rest {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(rest) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the processes %v of PostgreSQL outlive kill -9", rest)
		}
	}
	p.running = nil
}

// processes returns the processes whose working directory is the data folder.
func (p *Postgres) processes() (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is fine
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at == p.data() { // a process that has ended has no link
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// PowerOff ends all processes of the server as a loss of power does. Kill ends the parent first. Then
// a commit that waits for a synchronous standby stops waiting, and others see it for a moment.
func (p *Postgres) PowerOff(t TB) {
	t.Helper()
	parent := p.PID()
	if err := syscall.Kill(parent, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, pid := range p.processes() {
		if pid != parent {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
	}
	p.Kill(t)
}

// senders returns the processes that send the log to standbys.
func (p *Postgres) senders(t TB) (pids []int) {
	t.Helper()
	p.query(t, &pids, `SELECT coalesce(array_agg(pid), '{}') FROM pg_stat_replication WHERE state = 'streaming'`)
	return pids
}

// Promote makes a standby the primary, on a new timeline.
func (p *Postgres) Promote(t TB) {
	t.Helper()
	var promoted bool
	if p.query(t, &promoted, `SELECT pg_promote()`); !promoted {
		t.Fatal("the standby was not promoted within a minute")
	}
}

// Set changes a setting of the server, such as "fsync = off", for which it need not restart.
func (p *Postgres) Set(t TB, setting string) {
	t.Helper()
	p.run(t, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "ALTER SYSTEM SET "+setting)
		if err == nil {
			_, err = conn.Exec(ctx, "SELECT pg_reload_conf()")
		}
		return err
	})
}

// Has reports whether a query of a database returns a row.
func (p *Postgres) Has(t TB, database int, query string) (there bool) {
	t.Helper()
	p.in(t, p.url(fmt.Sprint("t", database)), func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT EXISTS ("+query+")").Scan(&there)
	})
	return there
}

func (p *Postgres) query(t TB, into any, sql string) {
	t.Helper()
	p.run(t, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(into) })
}

func (p *Postgres) run(t TB, do func(ctx context.Context, conn *pgx.Conn) error) {
	t.Helper()
	p.in(t, p.url("postgres"), do)
}

func (p *Postgres) in(t TB, url string, do func(ctx context.Context, conn *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err == nil {
		err = errors.Join(do(ctx, conn), conn.Close(ctx))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// URLWith returns the URL of a database of p and a standby: clients use the one that accepts writes.
func (p *Postgres) URLWith(standby *Postgres, database int) string {
	return fmt.Sprintf("postgres://feedbox@127.0.0.1:%d,127.0.0.1:%d/t%d?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", p.port, standby.port, database)
}
