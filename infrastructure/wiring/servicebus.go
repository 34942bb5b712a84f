package wiring

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.uber.org/fx"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/servicebus"
)

// serviceBusClient connects with the connection string if one is configured,
// else with the identity of the process.
func (s Surroundings) serviceBusClient(lc fx.Lifecycle, cfg config.ServiceBus) (*azservicebus.Client, error) {
	c := servicebus.ClientConfig{ConnectionString: cfg.ConnectionString.Reveal(), Namespace: cfg.Namespace, Dial: s.ServiceBusDial}
	if !cfg.ConnectionString.IsSet() {
		var err error
		if c.Credential, err = s.credential(); err != nil {
			return nil, err
		}
	}
	client, err := servicebus.NewClient(c)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(client.Close))
	return client, nil
}
