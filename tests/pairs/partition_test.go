//go:build faults

package pairs

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// The network between relay and RabbitMQ is cut under load in three ways: data arrives late,
// data is dropped silently, or connections are closed.
func TestPartition(t *testing.T) {
	seed := testkit.Seed(t, 3)
	cycles := max(3, testkit.Count(t, 30))
	random := rand.New(rand.NewPCG(seed, 0))
	store, broker := openPostgres(t), openRabbitMQ(t)
	address, err := url.Parse(rabbitServer.get(t).URL)
	must(t, err)
	network := testkit.StartProxy(t, address.Host)
	broker.env = append(broker.env, "FEEDBOX_RABBITMQ_URL="+strings.Replace(address.String(), address.Host, network.Addr(), 1))
	w := newWorld(t, store, broker)
	owning(t, w.relay(t))
	w.under(t, w.load(t, seed), func(changed func()) {
		for cycle := range cycles {
			cut := testkit.Way{Hold: true}
			switch cycle % 3 {
			case 0:
				network.Set(cut, cut)
			case 1:
				network.Set(testkit.Way{}, cut) // confirmations only
				network.Lose()
			default:
				network.Reset()
			}
			time.Sleep(time.Duration(500+random.IntN(2500)) * time.Millisecond)
			network.Heal()
			changed()
		}
	})
}
