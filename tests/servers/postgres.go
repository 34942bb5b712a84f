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
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"feedbox/tests/testenv"
)

// Postgres is a PostgreSQL server with fsync on. It must be used by one goroutine at a time.
type Postgres struct {
	bin, folder string
	port        int
	as          *syscall.Credential // nil: the user of the test
	owner       int                 // the user of the server
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
	p.initialize(t)
	p.Start(t)
	return p
}

// initialize creates the data of an empty server. It copies those of an earlier initdb, which takes a
// second of processor time, and tests start many servers.
func (p *Postgres) initialize(t TB) {
	t.Helper()
	program, err := os.Stat(filepath.Join(p.bin, "initdb"))
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(moduleRoot(t), ".cache", fmt.Sprintf("postgres-%s-%d-%d-%d", filepath.Base(filepath.Dir(p.bin)), program.Size(), program.ModTime().Unix(), p.owner))
	if info, err := os.Stat(made); err == nil && ownedBy(info, p.owner) && copyTree(made, p.data()) == nil {
		return
	}
	_ = os.RemoveAll(p.data()) // a part of a copy
	if out, err := p.command("initdb", "-D", p.data(), "-U", "feedbox", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	part := fmt.Sprintf("%s.%d", made, p.port)                                                                            // renamed when it is complete, because others start servers too
	if os.MkdirAll(filepath.Dir(made), 0o755) != nil || copyTree(p.data(), part) != nil || os.Rename(part, made) != nil { //nolint:gosec // as the folder of a module
		_ = os.RemoveAll(part) // another process was first, or the next server runs initdb again
	}
}

// ownedBy reports whether a file has this owner. A folder that was copied without its owners has another one, and a
// server cannot read it.
func ownedBy(info os.FileInfo, user int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == user
}

// copyTree copies a folder with the owners of its files.
func copyTree(from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	return exec.Command("cp", "-a", from, to).Run()
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
	if p.folder, err = os.MkdirTemp(memory(t), "feedbox-postgres-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill(t)
		_ = os.RemoveAll(p.folder)
	})
	p.owner = os.Getuid()
	if p.owner == 0 {
		p.demote(t)
	}
	p.port = Ports(t, 1)[0]
	return p
}

// memory returns a folder in memory, where fsync takes no time, or "" for the default. kill -9 of a
// server loses none of its files on either, so only tests at their full size use the disk, and
// benchmarks, which measure it. TMPDIR overrides it.
func memory(t TB) string {
	const folder, least = "/dev/shm", 4 << 30
	test, ok := t.(testing.TB)
	var disk syscall.Statfs_t
	if !ok || testenv.Full(test) || os.Getenv("TMPDIR") != "" || syscall.Statfs(folder, &disk) != nil || disk.Bavail*uint64(disk.Bsize) < least { //nolint:gosec // a block has a positive size
		return ""
	}
	return folder
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
	p.as, p.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, int(uid) //nolint:gosec // 32 bits
	if err := os.Chown(p.folder, int(uid), int(gid)); err != nil {                    //nolint:gosec // 32 bits
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
		"-c", "shared_buffers=64MB", "-c", "max_connections=100", "-c", "log_min_messages=fatal", "-c", "fsync=on",
		"-c", "dynamic_shared_memory_type=mmap") // in the folder of the server, because kill -9 leaves it behind
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
