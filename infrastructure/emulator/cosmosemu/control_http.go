package cosmosemu

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// The control endpoint offers the Go calls to other processes: split and merge partitions,
// move the clock, set faults. It answers only clients on the loopback interface or in the
// in-memory network. That does not keep web pages away, because a browser is a loopback client:
// changes require POST with content type application/json, which a page cannot send to another
// origin without asking first, and package hostguard refuses pages that use DNS rebinding to
// make this their own origin.
//
//	GET  /_emulator/dbs/{db}/colls/{coll}/ranges
//	POST /_emulator/dbs/{db}/colls/{coll}/split  {"range":"0","at":"1F..."}
//	POST /_emulator/dbs/{db}/colls/{coll}/merge  {"left":"1","right":"2"}
//	POST /_emulator/dbs/{db}/colls/{coll}/lose   {"range":"0","lsn":41}
//	POST /_emulator/dbs/{db}/colls/{coll}/restore      {"agoMs":60000}
//	POST /_emulator/dbs/{db}/colls/{coll}/restore/end  {}
//	POST /_emulator/regions/failover             {"region":"East US"}
//	POST /_emulator/regions/remove               {"region":"West US"}
//	POST /_emulator/regions/advertise            {}
//	POST /_emulator/clock                        {"advanceMs":60000}
//	POST /_emulator/faults                       {"operation":"CreateItem","times":3,"status":429,"retryAfterMs":100}
//	POST /_emulator/faults/clear                 {}
const controlPath = "/_emulator/"

// ControlEndpoint is the URL of the control endpoint.
func (s *Server) ControlEndpoint() string { return strings.TrimSuffix(s.Endpoint(), "/") + controlPath }

// controlRequest is the body of all control requests.
type controlRequest struct {
	Range, At    string
	Left, Right  string
	LSN          uint64 // the last that remains
	AgoMS        int64
	Region       string
	AdvanceMS    int64
	Operation    Operation
	Times        int // 0: until cleared
	DelayMS      int64
	Execute      bool
	Status       int
	SubStatus    int
	RetryAfterMS int64
	Message      string
	Loss         string // reset, truncate, drop
}

var lossNames = map[string]Loss{"": NoLoss, "reset": Reset, "truncate": Truncate, "drop": Drop}

func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	answer, err := s.control(r)
	if err != nil {
		x := &request{account: &s.account, req: r, header: r.Header}
		x.writeError(w, asWire(err))
		return
	}
	w.Header()[headerContentType] = contentTypeJSON
	_, _ = w.Write(answer) // fails only if the client has disconnected
}

func (s *Server) control(r *http.Request) ([]byte, error) {
	if !fromLoopback(r) {
		return nil, refuse(http.StatusForbidden, "The control endpoint answers loopback clients only")
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, controlPath), "/")
	inContainer := len(parts) == 5 && parts[0] == "dbs" && parts[2] == "colls"
	if r.Method == http.MethodGet {
		if inContainer && parts[4] == "ranges" {
			return s.controlRanges(parts[1], parts[3])
		}
		return nil, refuse(http.StatusNotFound, "There is no control request GET %s", r.URL.Path)
	}
	if r.Method != http.MethodPost || !strings.HasPrefix(first(r.Header, headerContentType), "application/json") {
		return nil, refuse(http.StatusUnsupportedMediaType, "Control requests are POST with content type application/json")
	}
	var in controlRequest
	body := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16))
	body.DisallowUnknownFields() // without its operation, a fault would be one of all
	err := body.Decode(&in)
	if err == nil && body.More() {
		err = errors.New("text follows the first value")
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "The control request is not JSON of the known members: %v", err)
	}
	switch path := strings.Join(parts, "/"); {
	case inContainer && parts[4] == "split" && in.At != "":
		err = s.SplitAt(parts[1], parts[3], in.Range, in.At)
	case inContainer && parts[4] == "split":
		err = s.Split(parts[1], parts[3], in.Range)
	case inContainer && parts[4] == "merge":
		err = s.Merge(parts[1], parts[3], in.Left, in.Right)
	case inContainer && parts[4] == "lose":
		err = s.LoseWrites(parts[1], parts[3], in.Range, in.LSN)
	case inContainer && parts[4] == "restore":
		if err = s.BeginRestore(parts[1], parts[3], s.now().Add(-time.Duration(in.AgoMS)*time.Millisecond)); err == nil {
			return []byte("{}"), nil // the container has no ranges until the end
		}
	case len(parts) == 6 && parts[0] == "dbs" && parts[2] == "colls" && parts[4] == "restore" && parts[5] == "end":
		err = s.EndRestore(parts[1], parts[3])
	case path == "regions/failover":
		err = s.FailOver(in.Region)
	case path == "regions/remove":
		err = s.RemoveRegion(in.Region)
	case path == "regions/advertise":
		s.AdvertiseRegions()
	case path == "clock":
		s.Advance(time.Duration(in.AdvanceMS) * time.Millisecond)
	case path == "faults":
		err = s.controlFault(&in)
	case path == "faults/clear":
		s.dispatcher.hooks.Clear()
	default:
		return nil, refuse(http.StatusNotFound, "There is no control request POST %s", r.URL.Path)
	}
	if err != nil {
		return nil, err
	}
	if inContainer {
		return s.controlRanges(parts[1], parts[3])
	}
	return []byte("{}"), nil
}

func (s *Server) controlRanges(database, container string) ([]byte, error) {
	ranges, err := s.PartitionKeyRanges(database, container)
	if err != nil {
		return nil, err
	}
	type wire struct {
		ID           string   `json:"id"`
		MinInclusive string   `json:"minInclusive"`
		MaxExclusive string   `json:"maxExclusive"`
		Parents      []string `json:"parents"`
		LSN          uint64   `json:"lsn"`
		Throughput   float64  `json:"throughput,omitempty"`
		Consumed     float64  `json:"consumed,omitempty"`
		Throttled    int      `json:"throttled,omitempty"`
	}
	out := make([]wire, 0, len(ranges))
	for _, r := range ranges {
		out = append(out, wire(r))
	}
	return json.Marshal(map[string]any{"ranges": out})
}

func (s *Server) controlFault(in *controlRequest) error {
	loss, known := lossNames[in.Loss]
	if !known {
		return refuse(http.StatusBadRequest, "loss is %q: it must be reset, truncate or drop", in.Loss)
	}
	if _, known := handlers[in.Operation]; !known && in.Operation != OpAny {
		return refuse(http.StatusBadRequest, "There is no operation %q", in.Operation)
	}
	if in.Times < 0 || in.Status != 0 && (in.Status < 200 || in.Status > 599) {
		return refuse(http.StatusBadRequest, "times is %d and status %d: times must not be negative, and status be from 200 to 599", in.Times, in.Status)
	}
	if in.Status == 0 && loss == NoLoss && in.DelayMS <= 0 {
		return refuse(http.StatusBadRequest, "The fault has no effect: give it a status, a delayMs or a loss")
	}
	f := Fault{
		Delay: time.Duration(in.DelayMS) * time.Millisecond, Execute: in.Execute, Status: in.Status, SubStatus: in.SubStatus,
		RetryAfter: time.Duration(in.RetryAfterMS) * time.Millisecond, Message: in.Message, Loss: loss,
	}
	hook := Always(f)
	if in.Times > 0 {
		hook = Times(in.Times, f)
	}
	s.Control(in.Operation, hook)
	return nil
}

// fromLoopback reports whether the client is on this machine or in an in-memory network.
func fromLoopback(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr == "pipe"
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
