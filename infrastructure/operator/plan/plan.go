// Package plan sizes a deployment: throughput and partitions of Cosmos DB, messaging units of
// Service Bus, relays, the traffic of leases and polls, and the cost of a month.
//
// It is arithmetic on an Input and on dated figures (Figures). It reads no clock, environment or
// network, so a plan is the same everywhere.
package plan

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// Plan is the size of a deployment.
type Plan struct {
	Input Input  `json:"input"`
	Lines []Line `json:"lines"`
	// TTL is the proposed lifetime of events; it is at most Input.TTL unless that is too short
	// for the outage.
	TTL       Duration `json:"proposedTTL"`
	TTLReason string   `json:"ttlReason"`

	// Results that a deployment needs.
	RequestUnits     float64 `json:"requestUnits"`     // of all data containers
	LeaseUnits       float64 `json:"leaseUnits"`       // of all containers of leases
	RatePartitions   int     `json:"ratePartitions"`   // by throughput
	StorePartitions  int     `json:"storePartitions"`  // by storage
	Containers       int     `json:"containers"`       // of data
	MessagingUnits   int     `json:"messagingUnits"`   // needed
	Namespaces       int     `json:"namespaces"`       // Premium
	UnitsOfNamespace int     `json:"unitsOfNamespace"` // bought for each
	Relays           int     `json:"relays"`

	cost float64 // of a month
}

// Line is one result.
type Line struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"` // nil: unknown
	Unit  string   `json:"unit,omitempty"`
	Text  string   `json:"text"` // value and unit
	// Assumption is how the value was calculated and what was assumed.
	Assumption string    `json:"assumption"`
	Figures    []*Figure `json:"figures,omitempty"`
}

// Timings of relays that the plan uses; see changefeed.Options.
const (
	checkpointEvery = 1.0  // seconds between two checkpoints of a busy range
	pollIdle        = 5.0  // seconds between two reads of an idle range
	pollMin         = 0.01 // seconds between two reads of a range with a recent change
	pollRate        = 1000 // reads without a change that a relay makes in a second, at most
	renewParts      = 4    // writes of an idle lease in a takeover time
	acquireParts    = 4    // listings of all leases in a takeover time
	leaseKB         = 1    // size of a lease
	monthHours      = 730
	monthSeconds    = monthHours * 3600
	relayCores      = 0.5 // of bicep/modules/relay.bicep, production
	relayMemory     = 1.0 // GiB
)

// New calculates a plan. The error lists all faults of the input.
func New(in Input) (*Plan, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	p := size(in)
	other := in
	if other.TTL = p.TTL; other.TTL < in.TTL {
		saved := p.cost - size(other).cost
		p.add("saved by a TTL of "+other.TTL.String(), saved, "USD", "in a month, with everything that depends on it")
		if saved < p.cost/10 {
			p.TTL, p.TTLReason = in.TTL, fmt.Sprintf("as given, because %s would save less than a tenth of the cost", other.TTL)
		}
	}
	p.duration("proposed TTL", p.TTL.seconds(), p.TTLReason, partitionStorage)
	return p, nil
}

func size(in Input) *Plan {
	p := &Plan{Input: in}
	l := newLoad(in)
	p.database(l)
	p.messaging(l)
	p.relays(l)
	p.ttl(l)
	p.month(l)
	return p
}

// load is the traffic of an Input.
type load struct {
	changes, events float64 // a second in the busiest hour
	relays          int
	eventBytes      float64 // a second, on average
	stored          float64 // GB of events
	aggregates      float64 // GB
	gigabytes       float64 // all
	change          float64 // request units of a change
}

func newLoad(in Input) *load {
	l := &load{changes: in.Changes * in.Peak}
	l.events = l.changes * in.Events
	l.relays = max(count(l.events/in.RelayRate)+1, 2)
	l.eventBytes = in.Changes * in.Events * float64(in.EventBytes)
	l.stored = l.eventBytes * in.TTL.seconds() / 1e9
	l.aggregates = float64(in.Aggregates) * float64(in.StateBytes) / 1e9
	l.gigabytes = l.stored + l.aggregates
	read, write := Charge(in.StateBytes)
	_, event := Charge(in.EventBytes)
	_, expiry := Charge(1)
	kb := (float64(in.StateBytes) + in.Events*float64(in.EventBytes)) / 1024
	if in.Versions {
		kb += in.Events * float64(in.EventBytes) / 1024 // a deletion has the expired event
	}
	l.change = cmp.Or(in.ChangeUnits, read+write+in.Events*(event+expiry)+FeedCharge(0, in.entries(), kb))
	return l
}

// entries returns the entries of a change in the feed: the aggregate and the events. The feed of all
// versions also has the expiry of each event.
func (in *Input) entries() float64 {
	if in.Versions {
		return 1 + 2*in.Events
	}
	return 1 + in.Events
}

func (p *Plan) add(name string, value float64, unit, assumption string, of ...*Figure) {
	p.Lines = append(p.Lines, Line{Name: name, Value: &value, Unit: unit, Text: strings.TrimSpace(number(value) + " " + unit), Assumption: assumption, Figures: of})
}

// duration adds a time; short ones in seconds, others in minutes or hours.
func (p *Plan) duration(name string, seconds float64, assumption string, of ...*Figure) {
	value, unit := seconds, "s"
	switch {
	case seconds >= 2*3600:
		value, unit = seconds/3600, "h"
	case seconds >= 2*60:
		value, unit = seconds/60, "min"
	}
	p.Lines = append(p.Lines, Line{Name: name, Value: &seconds, Unit: "s", Text: number(value) + " " + unit, Assumption: assumption, Figures: of})
}

func (p *Plan) unknown(name, why string, of ...*Figure) {
	p.Lines = append(p.Lines, Line{Name: name, Text: "unknown", Assumption: why, Figures: of})
}

// polls returns the reads of the change feed a second for that many ranges: one for each change of
// a range, but not faster than a read and a pause allow, and enough for all documents; and those that
// find nothing, as far as the relays may make them.
func polls(l *load, in Input, ranges float64) float64 {
	busy := in.PollBusy.seconds() + readLatency.Value/1000
	found := max(min(l.changes, ranges/busy), l.changes*in.entries()/pageItems.Value)
	return found + min(ranges*emptyReads(ranges/l.changes, max(in.PollBusy.seconds(), pollMin)), float64(l.relays)*pollRate)
}

// emptyReads returns the reads a second of a range with a change every gap seconds that find nothing, as
// changefeed.Options.PollMin describes: at first after pauses of pause, then of a hundredth of the time since
// the change, and after a minute of pollIdle.
func emptyReads(gap, pause float64) float64 {
	const fades, idle = 100, 60
	knee := min(fades*pause, idle)
	reads := min(gap, knee)/(pause+readLatency.Value/1000) + fades*math.Log(min(max(gap, knee), idle)/knee) + max(0, gap-idle)/max(pollIdle, pause)
	return max(0, reads-1) / gap // the last one finds the change
}

// neededUnits returns the request units a second for changes and polls, with at least that many ranges.
func neededUnits(l *load, in Input, ranges float64) float64 {
	changes := l.changes * l.change
	reads := polls(l, in, math.Ceil(max(changes*in.Headroom/partitionRate.Value, ranges, 1)))
	return (changes + FeedCharge(reads, 0, 0)) * in.Headroom
}

func (p *Plan) database(l *load) {
	in := p.Input
	needed := neededUnits(l, in, l.gigabytes/partitionStorage.Value)
	floor := l.gigabytes * storageRate.Value / autoscaleFloor.Value
	p.RequestUnits = max(needed, floor, autoscaleLowest.Value)
	p.RatePartitions = count(needed / partitionRate.Value)
	p.StorePartitions = count(l.gigabytes / partitionStorage.Value)
	p.Containers = count(float64(thousands(p.RequestUnits)) / containerRate.Value) // in the steps of a container, otherwise a fraction more would exceed its limit

	how := fmt.Sprintf("read and write of the aggregate, write and expiry of events (%s), feed; every write is charged by the table", number(in.Events))
	if in.ChangeUnits > 0 {
		how = "given"
	}
	p.add("request units of a change", l.change, "RU", how, readCost, writeCost, feedCost)
	p.add("request units", p.RequestUnits, "RU/s", fmt.Sprintf("%s changes/s in the busiest hour and polls, times the headroom %s for uneven partitions; at least %s RU/s for the storage",
		number(l.changes), number(in.Headroom), number(floor)), storageRate, autoscaleFloor, autoscaleLowest)
	p.add("partitions by throughput", float64(p.RatePartitions), "", "keys spread evenly", partitionRate)
	p.add("storage of events", l.stored, "GB", fmt.Sprintf("average rate for a TTL of %s; sizes include the index", in.TTL), partitionStorage)
	if in.Aggregates == 0 {
		p.unknown("storage of aggregates", "give --aggregates; not in the partitions and the cost below")
	} else {
		p.add("storage of aggregates", l.aggregates, "GB", "sizes include the index")
	}
	p.add("partitions by storage", float64(p.StorePartitions), "", "events and aggregates, keys of equal size", partitionStorage)
	p.add("containers", float64(p.Containers), "", "without a support request; writers choose one by a stable hash of the key", containerRate)
	p.add("one key, by throughput", partitionRate.Value/l.change, "changes/s", "the key has a physical partition for itself", partitionRate)
	p.add("one key, by storage", keyStorage.Value*1e9/(in.Events*float64(in.EventBytes))/in.TTL.seconds(), "changes/s", "for a whole TTL; events of the key only", keyStorage)
	p.add("throughput of a partition", p.RequestUnits/float64(p.ranges()), "RU/s", "divided evenly; a partition with a hot key is throttled above it", partitionRate)
}

// ranges is the number of physical partitions, each with one lease.
func (p *Plan) ranges() int { return max(p.RatePartitions, p.StorePartitions) }

func (p *Plan) messaging(l *load) {
	in := p.Input
	mb := l.events * float64(in.EventBytes) / 1e6
	out := mb * float64(in.Subscriptions)
	p.MessagingUnits = count(max(mb, out) / unitRate.Value)
	most := unitsOfPartition.Value
	if float64(p.MessagingUnits) > most {
		most *= namespaceSections.Value
	}
	p.Namespaces = count(float64(p.MessagingUnits) / most)
	p.UnitsOfNamespace = 1
	sections := int(most / unitsOfPartition.Value)
	for p.UnitsOfNamespace = sections; p.UnitsOfNamespace*p.Namespaces < p.MessagingUnits; {
		p.UnitsOfNamespace *= 2
	}
	p.add("messaging units", float64(p.MessagingUnits), "", fmt.Sprintf("%s MB/s in, %s MB/s out (subscriptions: %d); sessions and duplicate detection may need more", number(mb), number(out), in.Subscriptions), unitRate)
	p.add("Premium namespaces", float64(p.Namespaces), "", fmt.Sprintf("%d messaging units in each; more than %s need a namespace of %s partitions, which bicep/ does not create",
		p.UnitsOfNamespace, number(unitsOfPartition.Value), number(namespaceSections.Value)), unitsOfPartition, namespaceSections)
	credits := l.events * (1 + 2*float64(in.Subscriptions))
	if size := standardMessage.Value * 1000; float64(in.EventBytes) > size {
		p.unknown("Standard namespaces instead", fmt.Sprintf("events of %d bytes are too large", in.EventBytes), standardMessage)
	} else {
		p.add("Standard namespaces instead", float64(count(credits/standardCredits.Value)), "", "a credit for each send, each evaluation of a filter and each receipt", standardCredits)
	}
	p.add("ids in the duplicate window", l.events*in.DuplicateWindow.seconds(), "", fmt.Sprintf("events/s in the busiest hour, for %s; the broker remembers them", in.DuplicateWindow))
	gigabytes := float64(in.TopicGB) * float64(p.Namespaces)
	p.duration("time until a topic is full", gigabytes*1e9/(mb*1e6), fmt.Sprintf("nothing is consumed in the busiest hour; %d GB a topic, one a namespace, each event stored once", in.TopicGB), topicStorage)
}

func (p *Plan) relays(l *load) {
	in := p.Input
	ranges := float64(p.ranges())
	p.Relays = l.relays
	assumption := "one more than the load needs, to take over; at least 2"
	if p.Relays > max(p.ranges(), 2) {
		p.Relays = max(p.ranges(), 2)
		assumption = "no more than partitions, because one relay reads each; they cannot carry the load"
	}
	p.add("relays", float64(p.Relays), "", fmt.Sprintf("%s events/s each; %s", number(in.RelayRate), assumption), relayRate)

	renew := in.Takeover.seconds() / renewParts
	writes := ranges * max(min(l.changes/ranges, 1/checkpointEvery), 1/renew)
	listings := float64(p.Relays) * acquireParts / in.Takeover.seconds()
	_, write := Charge(leaseKB * 1024)
	leases := writes*write + listings*QueryCharge(ranges, ranges*leaseKB)
	p.LeaseUnits = leases * in.Headroom
	reads := polls(l, in, ranges)
	p.add("lease traffic", leases, "RU/s", fmt.Sprintf("%s writes/s, and %d relays list %s leases of %d KB every %s s", number(writes), p.Relays, number(ranges), leaseKB, number(in.Takeover.seconds()/acquireParts)), writeCost, queryCost)
	p.add("feed reads", reads, "/s", fmt.Sprintf("one for each change of a range, at most one in %s ms and %s documents a page; and those that find nothing, at most %d a relay", number(in.PollBusy.seconds()*1000+readLatency.Value), number(pageItems.Value), pollRate), readLatency, pageItems)
	p.add("delay by polling", in.PollBusy.seconds()*1000/2, "ms", "on average, of a change in a busy range; at most twice as much")
	p.add("share of leases and polls", 100*(leases+FeedCharge(reads, 0, 0))/(p.RequestUnits+leases), "%", "of all request units", feedCost)

	capacity := min(float64(p.Relays)*in.RelayRate, float64(p.Namespaces*p.UnitsOfNamespace)*unitRate.Value*1e6/(float64(in.EventBytes)*float64(in.Subscriptions)))
	average := in.Changes * in.Events
	how := fmt.Sprintf("an outage of %s at the average rate; relays and broker send %s events/s", in.Outage, number(capacity))
	if capacity <= average {
		p.unknown("catch-up time", "never: no spare capacity; "+how, relayRate, unitRate)
	} else {
		p.duration("catch-up time", average*in.Outage.seconds()/(capacity-average), how, relayRate, unitRate)
	}
}

// ttl proposes the longest TTL whose storage needs no more partitions than the throughput.
func (p *Plan) ttl(l *load) {
	in := p.Input
	safe := Duration(4 * time.Duration(in.Outage)).hours(math.Ceil)
	partitions := math.Ceil(neededUnits(l, in, 1) / partitionRate.Value) // without storage: fewer ranges have fewer polls
	free := (partitionStorage.Value*partitions - l.aggregates) * 1e9 / l.eventBytes
	cheap := Duration(min(max(free, 0), 1e9) * float64(time.Second)).hours(math.Floor)
	switch {
	case in.Versions:
		p.TTL, p.TTLReason = min(in.TTL, Duration(time.Minute)), "the feed of all versions has events that have expired"
	case in.TTL < safe:
		p.TTL, p.TTLReason = safe, fmt.Sprintf("four times the outage of %s, because the relay raises its alarm at a quarter of the TTL", in.Outage)
	case cheap >= in.TTL:
		p.TTL, p.TTLReason = in.TTL, "its events fit into the partitions that the throughput needs"
	case cheap >= safe:
		p.TTL, p.TTLReason = cheap, fmt.Sprintf("the longest with events that fit into the %s partitions that the throughput needs", number(partitions))
	default:
		p.TTL, p.TTLReason = safe, fmt.Sprintf("the shortest that is safe: four times the outage of %s", in.Outage)
	}
}

func (p *Plan) month(l *load) {
	in := p.Input
	regions := float64(in.Regions)
	lowest := float64(p.Containers) * autoscaleLowest.Value
	all := p.RequestUnits + max(p.LeaseUnits, lowest) + lowest // of parked events
	manual := all / 100 * throughputPrice.Value * monthHours * regions
	autoscale := manual * autoscaleFactor.Value * max(1/in.Peak, autoscaleFloor.Value)
	storage := l.gigabytes * storagePrice.Value * regions
	units := float64(p.Namespaces*p.UnitsOfNamespace) * in.UnitPrice * monthHours
	relays := float64(p.Relays) * monthSeconds * (relayCores*cpuPrice.Value + relayMemory*memoryPrice.Value)
	p.add("throughput, autoscale", autoscale, "USD", fmt.Sprintf("a month of %d h, all containers (regions: %d); an average hour has %s %% of the busiest", monthHours, in.Regions, number(100/in.Peak)), throughputPrice, autoscaleFactor, autoscaleFloor)
	p.add("throughput, manual instead", manual, "USD", "the highest throughput all the time", throughputPrice)
	p.add("storage", storage, "USD", fmt.Sprintf("a TTL of %s (regions: %d)", in.TTL, in.Regions), storagePrice)
	p.add("messaging", units, "USD", "Premium; confirm the price and give --unit-price", unitPrice)
	p.add("processes of relays", relays, "USD", fmt.Sprintf("%d with %s vCPU and %s GiB; confirm the prices", p.Relays, number(relayCores), number(relayMemory)), cpuPrice, memoryPrice)
	p.cost = min(autoscale, manual) + storage + units + relays
	p.add("cost a month", p.cost, "USD", "the cheaper throughput; without API, logs, traffic between regions and discounts")
}

// count rounds up to a whole number, at least 1. A millionth is forgiven, because the arithmetic
// has rounding errors.
func count(n float64) int { return max(int(math.Ceil(n-1e-6)), 1) }
