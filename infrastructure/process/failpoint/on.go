//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Armed reports whether this binary has failpoints.
const Armed = true

// variable is read once. It does not begin with FEEDBOX_: the configuration refuses
// variables of that kind that it does not know.
const variable = "FAILPOINT"

// point is the place that was armed, with the signal that strikes there.
type point struct {
	name   string
	signal syscall.Signal
	left   atomic.Int64 // hits until it strikes
}

var armed = sync.OnceValue(func() *point {
	p, err := parse(os.Getenv(variable))
	if err != nil {
		panic(variable + ": " + err.Error())
	}
	return p
})

// parse reads name[:n][:kill|stop]; nil of an empty text.
func parse(text string) (*point, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ":")
	p := &point{name: parts[0], signal: syscall.SIGKILL}
	hits := int64(1)
	for _, part := range parts[1:] {
		n, err := strconv.ParseInt(part, 10, 64)
		switch {
		case part == "stop":
			p.signal = syscall.SIGSTOP
		case part == "kill":
		case err != nil || n < 1:
			return nil, fmt.Errorf("%q: want name[:hits][:kill|stop]", text)
		default:
			hits = n
		}
	}
	p.left.Store(hits)
	return p, nil
}

// Here marks a place. The goroutine that strikes does not come back from a kill.
func Here(name string) {
	p := armed()
	if p == nil || p.name != name || p.left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(os.Getpid(), p.signal) // a process may always signal itself
	if p.signal == syscall.SIGKILL {
		select {} // the signal is on its way
	}
}
