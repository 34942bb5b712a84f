package config

import "time"

// API is the configuration of the contacts API.
type API struct {
	Cosmos Cosmos `envPrefix:"COSMOS_"`
	Log    Log    `envPrefix:"LOG_"`

	// Listen is the address of the public listener.
	Listen string `env:"API_LISTEN" envDefault:"127.0.0.1:8080" check:"listen" doc:"address of the contacts API"`
	// OpsListen is the address of probes and metrics.
	OpsListen string `env:"OPS_LISTEN" envDefault:"127.0.0.1:0" check:"listen" doc:"address of /livez, /readyz and /metrics; port 0 takes a free one"`
	// EventTTL is how long an event document lives in the container.
	EventTTL time.Duration `env:"EVENT_TTL" envDefault:"240h" min:"1m" max:"87600h" doc:"lifetime of event documents; an event not sent by then is lost"`
	// DrainTimeout bounds the graceful stop.
	DrainTimeout time.Duration `env:"DRAIN_TIMEOUT" envDefault:"20s" min:"100ms" max:"10m" doc:"longest graceful stop after SIGTERM"`

	settings settings
}

// LoadAPI reads the API's configuration from environ, a list of NAME=value in
// the manner of os.Environ. The error is an [*Error] that lists every fault.
func LoadAPI(environ []string) (*API, error) {
	c := &API{}
	report := load(c, environ)
	checkCosmos(report, c.Cosmos)
	c.settings = report.settings
	return c, report.err()
}

// Settings lists every value with its source, secrets masked.
func (c *API) Settings() []Setting { return c.settings.list() }
