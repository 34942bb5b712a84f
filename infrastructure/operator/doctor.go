package operator

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// FindingStatus is the result of one examination.
type FindingStatus string

// The results.
const (
	FindingOK      FindingStatus = "ok"
	FindingWarning FindingStatus = "warning" // works, but look at it
	FindingFailed  FindingStatus = "failed"  // the process cannot do its work
	FindingUnknown FindingStatus = "unknown" // could not be examined
)

// Finding is what one examination found.
type Finding struct {
	Check  string
	Status FindingStatus
	Detail string
	Next   string // what to do about it
}

func fine(check, format string, args ...any) Finding {
	return Finding{Check: check, Status: FindingOK, Detail: fmt.Sprintf(format, args...)}
}

func (f Finding) is(status FindingStatus, next string) Finding {
	f.Status, f.Next = status, next
	return f
}

// DoctorOptions are the choices of Diagnose. Zero means the default.
type DoctorOptions struct {
	// Process is the one whose surroundings are examined. Default ProcessRelay.
	Process Process
	// ServiceBusAdmin is the base URL of the namespace's management API. Default: https
	// on the namespace's host. Emulators have it elsewhere.
	ServiceBusAdmin string
	// Each bounds one examination. Default 15 s.
	Each time.Duration
	// Found is called with each finding as it comes. Required.
	Found func(Finding)
}

// Diagnose examines the surroundings of a process, reading only. Nothing is sent: the
// link to the topic is opened and closed again. What cannot be examined because of an
// earlier failure is left out.
func (o *Operator) Diagnose(ctx context.Context, d DoctorOptions) {
	each := d.Each
	if each == 0 {
		each = 15 * time.Second
	}
	run := func(examine func(ctx context.Context) []Finding) (ok bool) {
		bounded, cancel := context.WithTimeout(ctx, each)
		defer cancel()
		ok = true
		for _, f := range examine(bounded) {
			d.Found(f)
			ok = ok && f.Status != FindingFailed
		}
		return ok
	}
	process := cmp.Or(d.Process, ProcessRelay)
	if run(o.examineCosmosName) {
		usable := run(func(ctx context.Context) []Finding { return o.examineContainers(ctx, process) })
		run(o.examineAccount)
		run(o.examineClock)
		usable = usable && run(func(ctx context.Context) []Finding { return o.examineAccess(ctx, process) })
		if usable && process == ProcessRelay {
			run(func(ctx context.Context) []Finding { return o.examineLeases(ctx, d.ServiceBusAdmin) })
			run(o.examineParked)
		}
	}
	if process == ProcessAPI {
		return // it knows nothing of Service Bus
	}
	if run(o.examineBusName) {
		run(o.examineSend)
		run(func(ctx context.Context) []Finding { return o.examineTopics(ctx, d.ServiceBusAdmin) })
	}
}

func (o *Operator) examineCosmosName(ctx context.Context) []Finding {
	return []Finding{lookUp(ctx, "cosmos dns", o.cosmosHost(), "FEEDBOX_COSMOS_ENDPOINT")}
}

func (o *Operator) examineBusName(ctx context.Context) []Finding {
	return []Finding{lookUp(ctx, "service bus dns", o.busHost(), "FEEDBOX_SERVICEBUS_NAMESPACE or FEEDBOX_SERVICEBUS_CONNECTION_STRING")}
}

// lookUp resolves a host.
func lookUp(ctx context.Context, check, host, variable string) Finding {
	if net.ParseIP(host) != nil {
		return fine(check, "%s is an address, nothing to look up", host)
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return fine(check, "%v", err).is(FindingFailed, "check "+variable+" and the network's DNS; with a private endpoint, that its private DNS zone is linked to this network")
	}
	return fine(check, "%s is %s", host, strings.Join(addresses, ", "))
}

func (o *Operator) cosmosHost() string {
	u, err := url.Parse(o.cfg.Cosmos.Endpoint)
	if err != nil {
		return o.cfg.Cosmos.Endpoint // the configuration has been checked
	}
	return u.Hostname()
}

// busAuthority is the namespace with its port, if it has one.
func (o *Operator) busAuthority() string {
	if o.cfg.ServiceBus.Namespace != "" {
		return o.cfg.ServiceBus.Namespace
	}
	for part := range strings.SplitSeq(o.cfg.ServiceBus.ConnectionString.Reveal(), ";") {
		if name, value, ok := strings.Cut(strings.TrimSpace(part), "="); ok && strings.EqualFold(name, "Endpoint") {
			return strings.Trim(strings.TrimPrefix(value, "sb://"), "/")
		}
	}
	return ""
}

func (o *Operator) busHost() string {
	host, _, err := net.SplitHostPort(o.busAuthority())
	if err != nil {
		return o.busAuthority() // no port
	}
	return host
}

// skewLimits: the service refuses requests dated 15 minutes off; logs and lease ages
// mislead much earlier.
const (
	skewWarning = 5 * time.Second
	skewFailure = 5 * time.Minute
)

func (o *Operator) examineClock(context.Context) []Finding {
	const check = "clock"
	ahead, known := o.clients.Clock.skew()
	f := fine(check, "this machine's is %s off the service's", ahead.Abs().Round(time.Second))
	switch {
	case !known:
		return []Finding{fine(check, "the service told no time").is(FindingUnknown, "")}
	case ahead.Abs() > skewFailure:
		return []Finding{f.is(FindingFailed, "set the clock, and keep it with NTP: signatures of requests are refused at 15 minutes")}
	case ahead.Abs() > skewWarning:
		return []Finding{f.is(FindingWarning, "keep the clock with NTP: ages that are shown are off by this much")}
	}
	return []Finding{f}
}
