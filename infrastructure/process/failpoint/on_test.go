//go:build failpoint

package failpoint

import (
	"syscall"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		name   string
		hits   int64
		signal syscall.Signal
	}{
		"sent":        {"sent", 1, syscall.SIGKILL},
		"sent:7":      {"sent", 7, syscall.SIGKILL},
		"send:7:stop": {"send", 7, syscall.SIGSTOP},
		"send:stop":   {"send", 1, syscall.SIGSTOP},
	} {
		p, err := parse(text)
		if err != nil || p.name != want.name || p.left.Load() != want.hits || p.signal != want.signal {
			t.Errorf("parse(%q) = %+v, %v", text, p, err)
		}
	}
	for _, text := range []string{"sent:0", "sent:x", "sent:-1"} {
		if _, err := parse(text); err == nil {
			t.Errorf("parse(%q) is accepted", text)
		}
	}
}
