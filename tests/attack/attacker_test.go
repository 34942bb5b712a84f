package attack

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// attackerVariable makes this test program an attacker.
const attackerVariable = "ATTACK_TEST_ATTACKER"

// attack is the input of an attacker, as JSON.
type attack struct {
	Address     string
	Connections int
	Pause, Pace time.Duration
	Scripts     []string // the connections send these in turn
}

// separate moves this process, and those that it starts, away from processor 0, which the attackers use.
// Without taskset or a second processor all share what there is.
func separate() {
	if runtime.NumCPU() < 2 {
		return
	}
	others := fmt.Sprint("1-", runtime.NumCPU()-1)
	if err := exec.Command("taskset", "-a", "-p", "-c", others, strconv.Itoa(os.Getpid())).Run(); err == nil {
		fmt.Println("attackers use processor 0, everything else", others)
		separated = true
	}
}

var separated bool

// attack has another process open connections, one every pause, that send scripts and never read. A
// connection that the server closes is opened again, one each millisecond: a flood of new connections
// needs a defence in front of the process. A small attack opens one in 20 ms, because its server has
// a twentieth of the places: it would replace them all while a busy machine starts one request. The
// first time all are opened at once. It returns once each was opened.
func (s *target) attack(connections int, pause time.Duration, scripts ...string) {
	s.t.Helper()
	program, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	command := []string{program}
	if separated {
		command = []string{"taskset", "-c", "0", program}
	}
	attacker := exec.CommandContext(s.ctx, command[0], command[1:]...)
	attacker.Env = append(os.Environ(), attackerVariable+"=yes")
	attacker.Stderr = os.Stderr
	in, inErr := attacker.StdinPipe()
	out, outErr := attacker.StdoutPipe()
	if inErr != nil || outErr != nil {
		s.t.Fatal(inErr, outErr)
	}
	if err := attacker.Start(); err != nil {
		s.t.Fatal(err)
	}
	began := make(chan struct{})
	s.attackers.Go(func() {
		begun := sync.OnceFunc(func() { close(began) })
		defer begun()
		for lines := bufio.NewScanner(out); lines.Scan(); begun() {
			opened, _ := strconv.ParseInt(lines.Text(), 10, 64)
			s.opened.Store(opened)
		}
		_ = attacker.Wait() // killed at the end
	})
	pace := time.Duration(sized(20, 1)) * time.Millisecond
	if err := json.NewEncoder(in).Encode(attack{s.address, connections, pause, pace, scripts}); err != nil {
		s.t.Fatal(err)
	}
	if <-began; s.opened.Load() == 0 {
		s.t.Fatal("the attacker ended before it had opened its connections")
	}
}

// attackAsked runs the attack of the standard input until it is killed. Once each connection was opened it
// prints their number, again and again.
func attackAsked() {
	var a attack
	if err := json.NewDecoder(os.Stdin).Decode(&a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var first sync.WaitGroup
	first.Add(a.Connections)
	var opened atomic.Int64
	began, period := time.Now(), time.Duration(a.Connections)*a.Pace
	for i := range a.Connections {
		go func() {
			begun := sync.OnceFunc(first.Done)
			for {
				a.hold(a.Scripts[i%len(a.Scripts)], &opened, begun)
				begun()
				turn := time.Since(began) - time.Duration(i)*a.Pace
				time.Sleep(max(100*time.Millisecond, period-turn%period))
			}
		}()
		time.Sleep(a.Pause)
	}
	first.Wait()
	for {
		if _, err := fmt.Println(opened.Load()); err != nil {
			os.Exit(1) // the test has ended
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// hold opens one connection, sends text, and holds it until the server closes it.
func (a *attack) hold(text string, opened *atomic.Int64, begun func()) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	conn, err := dialer.DialContext(context.Background(), "tcp", a.Address)
	if err != nil {
		return
	}
	defer conn.Close()
	opened.Add(1)
	_ = conn.(*net.TCPConn).SetReadBuffer(4096) // what the client does not read remains at the server
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, err = io.WriteString(conn, text)
	begun()
	for err == nil {
		time.Sleep(500 * time.Millisecond)
		_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, err = io.WriteString(conn, "\r") // fails after a reset
	}
}
