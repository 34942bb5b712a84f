package steps

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

// Wire is a recording of processes, taken between them and the Cosmos DB container of their leases.
// It has the steps that Log has of a lease store, because the processes run the programs as they are.
// It is safe for concurrent use. A nil Wire records nothing.
//
// A step is placed where it could first have an effect, or where its answer could first be received:
// a call when its request arrives here, and an end before the process has the answer. So a host of the
// recording never trusts a lease for a shorter time than the process does. A call that continues an
// ownership is placed when the process began it, which is the timestamp in the record: a process that
// is frozen between that moment and the send would otherwise seem to trust its lease afresh.
type Wire struct {
	documents string // path of the lease documents
	began     time.Time
	transport *http.Transport

	mu    sync.Mutex // guards the fields below
	calls int
	hosts map[string]int64       // when each was added
	steps map[string][]*wireStep // by prefix of the ids, which is one processor
}

// wireStep is a step, and the wall clock at it.
type wireStep struct {
	Step
	wall int64
}

// NewWire returns an empty recording of a container, or nil if no folder for recordings is set.
func NewWire(database, leases string) *Wire {
	if os.Getenv(Folder) == "" {
		return nil
	}
	return &Wire{
		documents: "/dbs/" + database + "/colls/" + leases + "/docs", began: time.Now(), hosts: map[string]int64{},
		steps: map[string][]*wireStep{}, transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	}
}

// Host returns an endpoint for a process, which forwards to endpoint until stop is called. Each process
// needs its own, because this is how the recording distinguishes them.
func (w *Wire) Host(name, endpoint string) (through string, stop func(), err error) {
	if w == nil {
		return endpoint, func() {}, nil
	}
	target, err := url.Parse(endpoint)
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		// The emulator names its endpoints after the host that a request names.
		Rewrite:      func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host },
		Transport:    w.host(name),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // the process sees a closed connection
	}}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) }) // it ends with Close
	return target.Scheme + "://" + l.Addr().String(), func() { _ = server.Close(); done.Wait() }, nil
}

func (w *Wire) host(name string) *wireHost {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[name] = time.Since(w.began).Microseconds()
	return &wireHost{Wire: w, name: name, leases: map[string]*wireLease{}}
}

// Write writes the recording to files of the folder, one for each processor.
func (w *Wire) Write(name string) (err error) {
	if w == nil {
		return nil
	}
	w.transport.CloseIdleConnections()
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, prefix := range slices.Sorted(maps.Keys(w.steps)) {
		all := w.steps[prefix]
		slices.SortStableFunc(all, func(a, b *wireStep) int { return cmp.Compare(a.At, b.At) })
		out := make([]any, len(all))
		for i, s := range all {
			s.Clocks = map[string][2]int64{} // all processes of a machine have the same clocks
			for host, since := range w.hosts {
				if since <= s.At {
					s.Clocks[host] = [2]int64{s.At, s.wall}
				}
			}
			out[i] = &s.Step
		}
		file := name
		if n > 0 {
			file = fmt.Sprint(name, "-", n+1)
		}
		err = cmp.Or(err, write(file, out))
	}
	return err
}
