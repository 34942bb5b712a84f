package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres is a PostgreSQL server with fsync on. It must be used by one goroutine at a time.
type Postgres struct {
	bin, folder string
	port        int
	as          *syscall.Credential // nil: the user of the test
	running     *exec.Cmd
	ended       chan struct{} // closed when running has stopped
	database    int
}

// startLimit is the maximum time until a server answers, including recovery after a crash.
const startLimit = time.Minute

// postgresBin returns the folder of the server's programs, or "" if it is not installed.
func postgresBin() string {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // the link's folder may not have all programs
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is fine
	slices.Sort(found)
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// StartPostgres starts a server until the test ends.
func StartPostgres(t TB) *Postgres {
	t.Helper()
	p := newPostgres(t)
	if out, err := p.command("initdb", "-D", p.data(), "-U", "feedbox", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	p.Start(t)
	return p
}

// newPostgres returns a server without data.
func newPostgres(t TB) *Postgres {
	t.Helper()
	p := &Postgres{bin: postgresBin()}
	if p.bin == "" {
		t.Skip("PostgreSQL is not installed: apt-get install postgresql")
	}
	var err error
	// The user of the server could not enter a folder of t.
	if p.folder, err = os.MkdirTemp("", "feedbox-postgres-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill(t)
		_ = os.RemoveAll(p.folder)
	})
	if os.Getuid() == 0 {
		p.demote(t)
	}
	p.port = Ports(t, 1)[0]
	return p
}

// demote selects another user for the server, because it refuses to run as root.
func (p *Postgres) demote(t TB) {
	t.Helper()
	who, err := user.Lookup("postgres")
	if err != nil {
		if who, err = user.Lookup("nobody"); err != nil {
			t.Skip("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
		}
	}
	uid, err1 := strconv.ParseUint(who.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(who.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		t.Fatalf("the user %s has the ids %s and %s", who.Username, who.Uid, who.Gid)
	}
	p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(p.folder, int(uid), int(gid)); err != nil { //nolint:gosec // 32 bits
		t.Fatal(err)
	}
}

func (p *Postgres) data() string { return filepath.Join(p.folder, "data") }

// log returns the path of the log of all runs of the server.
func (p *Postgres) log() string { return filepath.Join(p.folder, "log") }

func (p *Postgres) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir = p.folder
	cmd.SysProcAttr = endsWithTest()
	cmd.SysProcAttr.Credential = p.as
	return cmd
}

// Start restarts a killed server on the same data and waits until it answers.
func (p *Postgres) Start(t TB) {
	t.Helper()
	p.launch(t)
	p.Await(t)
}

// Await waits until the server answers, and restarts it if it has stopped.
func (p *Postgres) Await(t TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.url("postgres"))
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		select {
		case <-ctx.Done():
			said, _ := os.ReadFile(p.log()) // there may be none
			t.Fatalf("PostgreSQL does not answer: %v; it said:\n%s", err, said[max(0, len(said)-2000):])
		case <-p.ended: // processes of the previous run may have blocked it
			p.launch(t)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *Postgres) launch(t TB) {
	t.Helper()
	p.running = p.command("postgres", "-D", p.data(), "-p", strconv.Itoa(p.port), "-k", p.folder, "-c", "listen_addresses=127.0.0.1",
		"-c", "shared_buffers=64MB", "-c", "max_connections=100", "-c", "log_min_messages=fatal", "-c", "fsync=on")
	log, err := os.OpenFile(p.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p.running.Stdout, p.running.Stderr = log, log
	if err := p.running.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	p.ended = ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait() // how it ended does not matter
		close(ended)
	}(p.running)
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

// PID returns the process id of the server, the parent of all its processes.
func (p *Postgres) PID() int { return p.running.Process.Pid }

// Ended reports whether the server has stopped on its own.
func (p *Postgres) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
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

func (p *Postgres) url(database string) string {
	return fmt.Sprintf("postgres://feedbox@127.0.0.1:%d/%s?sslmode=disable", p.port, database)
}

// Database creates an empty database and returns its URL.
func (p *Postgres) Database(t TB) string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	p.database++
	name := fmt.Sprintf("t%d", p.database)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return p.url(name)
}
