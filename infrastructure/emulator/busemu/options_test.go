package busemu_test

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/pipenet"
)

// recorder replaces a *testing.T and records its failure.
type recorder struct {
	fatal   string
	cleanup []func()
}

func (*recorder) Helper()                {}
func (r *recorder) Cleanup(after func()) { r.cleanup = append(r.cleanup, after) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal += fmt.Sprintf(format, args...)
}

// end runs the cleanups, like the testing package after a test.
func (r *recorder) end() {
	for _, after := range slices.Backward(r.cleanup) {
		after()
	}
}

// Start and StartT refuse contradicting options and report all of them.
func TestContradictoryOptions(t *testing.T) {
	listener, err := pipenet.New().Listen("bus:5672")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for want, o := range map[string]*busemu.Options{
		"Addr and Listener exclude each other":           {Addr: "127.0.0.1:0", Listener: listener},
		"AdminAddr and AdminListener exclude each other": {AdminAddr: "-", AdminListener: listener},
		"AdminTLS is set but AdminAddr serves nothing":   {AdminAddr: "-", AdminTLS: &tls.Config{}},
		"FS is set but DataDir is not":                   {FS: vfs.NewMem()},
		`"nohost" is not host:port`:                      {Host: "nohost"},
		"key 0 needs a name and a value":                 {Keys: []busemu.SASKey{{}}},
		"is given twice":                                 {Keys: []busemu.SASKey{{Name: "a", Key: "b"}, {Name: "a", Key: "b"}}},
		"unknown rights":                                 {Keys: []busemu.SASKey{{Name: "a", Key: "b", Rights: 128}}},
	} {
		if srv, err := busemu.Start(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
			if err == nil {
				_ = srv.Close()
			}
		}
		r := &recorder{}
		if srv := busemu.StartT(r, o); srv != nil || !strings.Contains(r.fatal, want) {
			t.Errorf("StartT: want %q, the test ended with %q", want, r.fatal)
		}
	}
	r := &recorder{}
	if srv := busemu.StartT(r, nil, nil); srv != nil || !strings.Contains(r.fatal, "takes one Options, not 2") {
		t.Errorf("two options: the test ended with %q", r.fatal)
	}
}
