package relay

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"feedbox/infrastructure/wiring"
	"feedbox/tests/bench/measure"
)

// variant is a way to send the backlog, with its goals.
type variant struct {
	name       string
	pack, disk bool
	goal       float64 // events a second with a consumer
	sessions   float64 // the same with sessions; 0 = not measured
}

var variants = []variant{
	{"packed, memory", true, false, 60_000, 40_000},
	{"a batch per key, memory", false, false, 35_000, 0},
	{"packed, disk", true, true, 32_500, 0},
}

// throughput measures one variant.
func throughput(ctx context.Context, r *measure.Run, v variant) (err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(wiring.GarbagePercent)) // for floors and relay alike
	s := backlog()
	s.Pack, s.Disk = v.pack, v.disk
	rounds, length := 10, time.Minute
	if r.Quick {
		s.Contacts, rounds, length = 4000, 1, 0
	}
	r.Step("%s: storing %d events", v.name, s.total())
	st, err := openBacklog(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	batches, err := s.batches()
	if err != nil {
		return err
	}
	send := func(ctx context.Context) (measure.Sample, error) { return sendAlone(ctx, s, batches) }
	r.Step("%s: warming up", v.name)
	if _, err := measure.Alternate(ctx, 1, st.readAlone, send, st.relayAlone); err != nil {
		return err
	}
	turn := 0
	told := func(what string, side measure.Turn) measure.Turn {
		return func(ctx context.Context) (measure.Sample, error) {
			turn++
			r.Step("%s: turn %d of %d, %s", v.name, turn, 3*rounds, what)
			return side(ctx)
		}
	}
	sums, err := measure.Alternate(ctx, rounds,
		told("reading the feed", st.readAlone), told("sending the batches", send),
		told("relaying", st.relayAlone))
	if err != nil {
		return err
	}
	clear(batches) // frees their memory, so that the collector does not scan it
	read, sent, relayed := sums[0], sums[1], sums[2]
	received, err := st.refill(ctx, r, v.name+": to the consumer", length, false)
	if err != nil {
		return err
	}
	if v.sessions > 0 {
		name := v.name + ": to the consumer with sessions"
		inOrder, err := st.refill(ctx, r, name, length, true)
		if err != nil {
			return err
		}
		r.Add(measure.Rate(name, inOrder.Rate(), "events/s").Using(inOrder.PerOperation(), 0).Wants(measure.AtLeast(v.sessions)).
			Noting("handled in the order of each key, verified; %d connections", connections))
	}
	slower := read
	if sent.Rate() < read.Rate() {
		slower = sent
	}
	r.Add(
		measure.Rate(v.name+": to the consumer", received.Rate(), "events/s").Using(received.PerOperation(), 0).Wants(measure.AtLeast(v.goal)).
			Noting("order and ids verified; CPU of emulators, relay and consumer"),
		measure.Rate(v.name+": relay alone", relayed.Rate(), "events/s").OverRounds(relayed, read, sent).Using(relayed.PerOperation(), slower.PerOperation()).
			Wants(measure.RatioAtLeast(0.8)).Noting("floor: the slower of read and send; CPU with emulators"),
		measure.Rate(v.name+": azcosmos reads", read.Rate(), "events/s").Using(read.PerOperation(), 0),
		measure.Rate(v.name+": azservicebus sends", sent.Rate(), "events/s").Using(sent.PerOperation(), 0).Noting("the relay's batches"),
	)
	return nil
}

// refill relays the backlog to a consumer repeatedly until the length is over.
func (st *store) refill(ctx context.Context, r *measure.Run, name string, length time.Duration, sessions bool) (measure.Sample, error) {
	r.Step("%s", name)
	received, err := st.relayAndReceive(ctx, sessions)
	for err == nil && received.Elapsed < length {
		r.Step("%s, %v of %v", name, received.Elapsed.Round(time.Second), length)
		var more measure.Sample
		if more, err = st.relayAndReceive(ctx, sessions); err == nil {
			received = received.Add(more)
		}
	}
	return received, err
}
