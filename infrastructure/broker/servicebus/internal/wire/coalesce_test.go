package wire

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counted counts the writes to a connection.
type counted struct {
	net.Conn
	pieces int
}

func (c *counted) Write(b []byte) (int, error) {
	c.pieces++
	return c.Conn.Write(b)
}

func TestCoalesceWritesPendingFramesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		under := &counted{Conn: here}
		conn := coalesce(under)
		var want []byte
		for i := range 100 { // no reader: the first write blocks, and the rest is pending
			frame := bytes.Repeat([]byte{byte(i)}, i+1)
			if n, err := conn.Write(frame); n != len(frame) || err != nil {
				t.Fatalf("write %d: %d, %v", i, n, err)
			}
			want = append(want, frame...)
			synctest.Wait()
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(there, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("what was read is not what was written: %v", err)
		}
		synctest.Wait()
		if under.pieces != 2 {
			t.Errorf("%d writes, want 2", under.pieces)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCoalesceWritesTheRestOnClose(t *testing.T) {
	here, there := net.Pipe()
	conn := coalesce(here)
	want := make([]byte, 100_000)
	_, _ = rand.Read(want)
	read := make(chan []byte)
	go func() {
		got, _ := io.ReadAll(there)
		read <- got
	}()
	for rest := want; len(rest) > 0; rest = rest[1000:] {
		if _, err := conn.Write(rest[:1000]); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-read; !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, want the %d that were written", len(got), len(want))
	}
	if _, err := conn.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write after close: %v", err)
	}
}

func TestCoalesceBoundsPendingBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		conn := coalesce(here)
		frame := make([]byte, 1000)
		written := 0
		failed := make(chan error)
		go func() {
			for {
				if _, err := conn.Write(frame); err != nil {
					failed <- err
					return
				}
				written += len(frame)
			}
		}()
		synctest.Wait() // the writer waits for room, because the peer does not read
		if written < maxPending || written > 2*maxPending+2*len(frame) {
			t.Errorf("%d bytes were accepted, the limit is %d", written, maxPending)
		}
		start := time.Now()
		if err := <-failed; err == nil || time.Since(start) > writeTimeout {
			t.Errorf("the write to a peer that does not read failed after %v: %v", time.Since(start), err)
		}
		_ = there.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := there.Read(frame); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is not closed after the failed write: %v", err)
		}
		_ = conn.Close()
	})
}

func TestCoalesceCloseDoesNotWaitForAnUnresponsivePeer(t *testing.T) {
	for name, underWay := range map[string]bool{"a piece is under way": true, "all is left for the last piece": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, _ := net.Pipe()
				conn := coalesce(here)
				for range 3 {
					if _, err := conn.Write(make([]byte, 1000)); err != nil {
						t.Fatal(err)
					}
					if underWay {
						synctest.Wait()
					}
				}
				start := time.Now()
				_ = conn.Close()
				if took := time.Since(start); took > closeTimeout {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}

// closedEarly calls close when the first write deadline is set.
type closedEarly struct {
	net.Conn
	begun atomic.Bool
	close func()
}

func (c *closedEarly) SetWriteDeadline(t time.Time) error {
	if !c.begun.Swap(true) {
		go c.close()
		for range 1000 { // lets Close run until it blocks
			runtime.Gosched()
		}
	}
	return c.Conn.SetWriteDeadline(t)
}

// A concurrent write must not replace the deadline that Close sets.
func TestCoalesceCloseKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, _ := net.Pipe()
		under := &closedEarly{Conn: here}
		conn := coalesce(under)
		took := make(chan time.Duration)
		under.close = func() {
			start := time.Now()
			_ = conn.Close()
			took <- time.Since(start)
		}
		if _, err := conn.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if took := <-took; took > closeTimeout {
			t.Errorf("Close took %v", took)
		}
	})
}

func TestCoalesceContinuesWhenThePeerReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		conn := coalesce(here)
		written := 0
		go func() {
			for range 3 { // the first is being written, the second fills the buffer, the third blocks
				if _, err := conn.Write(make([]byte, maxPending)); err != nil {
					t.Error(err)
				}
				written++
			}
		}()
		synctest.Wait()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		synctest.Wait()
		if written != 3 {
			t.Errorf("%d of 3 writes succeeded with a reading peer", written)
		}
		_ = conn.Close()
		synctest.Wait() // for the writer
	})
}

// A blocked write fails at its deadline, and the next one at its own.
func TestCoalesceWriteFailsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		conn := coalesce(here)
		for range 2 { // no reader: one is being written, the other is pending
			if _, err := conn.Write(make([]byte, maxPending)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for range 2 {
			began := time.Now()
			_ = conn.SetWriteDeadline(began.Add(time.Second))
			_, err := conn.Write([]byte("late"))
			if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took != time.Second {
				t.Errorf("error %v after %v, want the deadline's after 1 s", err, took)
			}
		}
		_ = there.Close()
		_ = conn.Close()
	})
}
