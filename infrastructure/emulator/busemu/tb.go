package busemu

// TB is the part of testing.TB that StartT needs, so that this package does not
// import testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// StartT starts an emulator that is closed at the end of the test. At most one
// Options may be given.
func StartT(tb TB, opts ...*Options) *Server {
	tb.Helper()
	var o *Options
	switch len(opts) {
	case 0:
	case 1:
		o = opts[0]
	default:
		tb.Fatalf("busemu: StartT takes one Options, not %d", len(opts))
	}
	s, err := Start(o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Fatalf("busemu: close: %v", err)
		}
	})
	return s
}
