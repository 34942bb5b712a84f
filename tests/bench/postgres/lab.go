package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"

	"feedbox/tests/servers"
)

// lab implements servers.TB outside a test. A failure ends Run.
type lab struct {
	ends []func()
}

var _ servers.TB = (*lab)(nil)

// failure is the panic that ends a lab.
type failure struct{ text string }

func (*lab) Helper()                   {}
func (l *lab) Cleanup(end func())      { l.ends = append(l.ends, end) }
func (*lab) Fatal(args ...any)         { panic(failure{fmt.Sprintln(args...)}) }
func (*lab) Skip(args ...any)          { panic(failure{fmt.Sprintln(args...)}) }
func (*lab) Fatalf(f string, a ...any) { panic(failure{fmt.Sprintf(f, a...)}) }

func (l *lab) TempDir() string {
	dir, err := os.MkdirTemp("", "feedbox-bench-")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) }) // a folder of temporary files
	return dir
}

// inLab runs do and then stops the servers that it has started.
func inLab(ctx context.Context, do func(ctx context.Context, l *lab) error) (err error) {
	l := &lab{}
	defer func() {
		if f, failed := recover().(failure); failed {
			err = errors.New(f.text)
		}
		for i := len(l.ends) - 1; i >= 0; i-- {
			l.ends[i]()
		}
	}()
	return do(ctx, l)
}
