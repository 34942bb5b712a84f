package busemu

// TB is the part of testing.TB that StartT needs. With it this package does not import
// testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// StartT starts an emulator for one test and closes it with the test. It takes one Options at
// most.
func StartT(tb TB, options ...*Options) *Server {
	tb.Helper()
	var o *Options
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		tb.Fatalf("busemu: StartT takes one Options, not %d", len(options))
		return nil
	}
	srv, err := Start(o)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() {
		if err := srv.Close(); err != nil {
			tb.Fatalf("%v", err)
		}
	})
	return srv
}
