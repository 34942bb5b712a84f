package servers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler starts PgBouncer in front of the server until the test ends, and returns a database's URL
// through it. It pools by transaction, with PgBouncer's defaults otherwise, but with few connections
// and in turns, so that consecutive transactions of a client use different ones.
func (p *Postgres) Pooler(t TB, database string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("PgBouncer is not installed: apt-get install pgbouncer")
	}
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	port := Ports(t, 1)[0]
	// The folder of the server belongs to its user, who runs PgBouncer as well: it refuses root.
	config := filepath.Join(p.folder, fmt.Sprintf("pgbouncer-%d.ini", port))
	text := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d user=feedbox
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_round_robin = 1
logfile = %s.log
`, p.port, port, config)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil { //nolint:gosec // the server's user reads it
		t.Fatal(err)
	}
	cmd := p.command("postgres") // for its user and folder
	cmd.Path, cmd.Args = program, []string{program, config}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // how it ended does not matter
	})
	at.Host = fmt.Sprintf("127.0.0.1:%d", port)
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, at.String())
		if err == nil {
			_ = conn.Close(ctx)
			return at.String()
		}
		if ctx.Err() != nil {
			said, _ := os.ReadFile(config + ".log") // there may be none
			t.Fatalf("PgBouncer does not answer: %v; it said:\n%s", err, strings.TrimSpace(string(said)))
		}
		time.Sleep(20 * time.Millisecond)
	}
}
