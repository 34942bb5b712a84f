package cosmosemu

// TB is the part of testing.TB that StartT needs. It is declared here so that this package
// does not link the testing package.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// StartT starts an emulator for one test and closes it when the test ends. It accepts at
// most one Options.
func StartT(tb TB, options ...*Options) *Server {
	tb.Helper()
	var o *Options
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		tb.Fatalf("cosmosemu: StartT takes one Options, not %d", len(options))
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
