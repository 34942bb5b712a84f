package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// rabbitMQ is the folder of the programs of Debian's package rabbitmq-server. We do not use
// those on the PATH, because they change the user first.
const rabbitMQ = "/usr/lib/rabbitmq/bin"

// idle are options of Erlang's schedulers: they sleep when they have nothing to do. By default they
// first wait busily, which costs the processor time of the tests beside them.
const idle = "+sbwt none +sbwtdcpu none +sbwtdio none"

// RabbitMQ is a broker that a test may kill and restart.
type RabbitMQ struct {
	// URL of the broker, for its user guest.
	URL string

	env     []string
	address string
	cmd     *exec.Cmd
	exited  chan struct{}
}

// StartRabbitMQ starts a broker in a folder of the test and waits until it accepts connections.
// It is stopped when the test ends.
func StartRabbitMQ(t TB) *RabbitMQ {
	t.Helper()
	if _, err := os.Stat(filepath.Join(rabbitMQ, "rabbitmq-server")); err != nil {
		t.Skip("RabbitMQ is not installed (tests/servers/install.sh)")
	}
	dir := t.TempDir()
	if fast := memory(t); fast != "" {
		var err error
		if dir, err = os.MkdirTemp(fast, "feedbox-rabbitmq-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	ports := Ports(t, 3)
	config := "loopback_users.guest = true\nlog.file.level = warning\nvm_memory_high_watermark.absolute = 2GB\ndisk_free_limit.absolute = 100MB\n"
	for name, text := range map[string]string{"rabbitmq.conf": config, "enabled_plugins": "[].\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &RabbitMQ{
		URL: fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", ports[0]), address: fmt.Sprintf("127.0.0.1:%d", ports[0]),
		env: append(os.Environ(),
			"HOME="+dir, fmt.Sprintf("RABBITMQ_NODENAME=feedbox%d@localhost", ports[0]),
			fmt.Sprintf("RABBITMQ_NODE_PORT=%d", ports[0]), "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
			fmt.Sprintf("RABBITMQ_DIST_PORT=%d", ports[1]), fmt.Sprintf("ERL_EPMD_PORT=%d", ports[2]), "ERL_EPMD_ADDRESS=127.0.0.1",
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+idle, "RABBITMQ_CTL_ERL_ARGS="+idle,
			"RUNNING_UNDER_SYSTEMD=true", // the script becomes the broker, so that the kernel ends the broker with the test
			"RABBITMQ_MNESIA_BASE="+dir, "RABBITMQ_LOG_BASE="+dir, "RABBITMQ_CONFIG_FILE="+filepath.Join(dir, "rabbitmq.conf"),
			"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(dir, "enabled_plugins"), "RABBITMQ_PID_FILE="+filepath.Join(dir, "pid"),
			"RABBITMQ_CONF_ENV_FILE="+filepath.Join(dir, "none"),
		),
	}
	r.startPortMapper(t, fmt.Sprintf("127.0.0.1:%d", ports[2]))
	t.Cleanup(r.Kill)
	r.Start(t)
	return r
}

// startPortMapper starts epmd, the daemon that Erlang's nodes find each other by. The broker would
// start one that detaches itself and outlives a test that is killed.
func (r *RabbitMQ) startPortMapper(t TB, address string) {
	t.Helper()
	cmd := exec.Command("epmd")
	cmd.Env, cmd.SysProcAttr = r.env, endsWithTest()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()         // killed
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("epmd accepted no connection within a minute: ", err)
		}
	}
}

// Start restarts the broker after Kill.
func (r *RabbitMQ) Start(t TB) {
	t.Helper()
	r.cmd = exec.Command(filepath.Join(rabbitMQ, "rabbitmq-server"))
	r.cmd.Env = r.env
	r.cmd.SysProcAttr = endsWithTest()
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, exited := r.cmd, make(chan struct{})
	r.exited = exited
	go func() {
		_ = cmd.Wait() // killed
		close(exited)
	}()
	deadline := time.Now().Add(5 * time.Minute) // it starts slowly on a busy machine
	for !r.answers() {
		select {
		case <-exited:
			t.Fatal("RabbitMQ ended before it took connections")
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("RabbitMQ took no connection within five minutes")
		}
	}
}

// answers reports whether the broker speaks AMQP, because it opens its port a little earlier.
func (r *RabbitMQ) answers() bool {
	conn, err := net.DialTimeout("tcp", r.address, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		return false
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

// Kill kills the broker with kill -9.
func (r *RabbitMQ) Kill() {
	if r.cmd == nil {
		return
	}
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // it may have stopped already
	<-r.exited
	r.cmd = nil
}

// PID returns the id of the broker's process.
func (r *RabbitMQ) PID() int { return r.cmd.Process.Pid }

// Control runs rabbitmqctl.
func (r *RabbitMQ) Control(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(rabbitMQ, "rabbitmqctl"), args...)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("rabbitmqctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
