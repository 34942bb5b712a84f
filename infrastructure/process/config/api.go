package config

import "time"

// API is the configuration of the contacts API.
type API struct {
	Store     Store
	Cosmos    Cosmos    `envPrefix:"COSMOS_"`
	Postgres  Postgres  `envPrefix:"POSTGRES_"`
	Firestore Firestore `envPrefix:"FIRESTORE_"`
	Log       Log       `envPrefix:"LOG_"`
	Auth      Auth      // FEEDBOX_AUTH and FEEDBOX_AUTH_
	APIKeys   APIKeys   `env:"AUTH_API_KEYS" doc:"callers of the API in mode apikey: name:read:HASH or name:write:HASH, separated by commas; HASH is the SHA-256 of the key in hexadecimal; read+audit and write+audit also show in audit trails who the other callers are"`

	Listen              string        `env:"API_LISTEN" envDefault:"127.0.0.1:8080" check:"listen" doc:"address of the contacts API"`
	OpsListen           string        `env:"OPS_LISTEN" envDefault:"127.0.0.1:0" check:"listen" doc:"address of /livez and /readyz, and of /metrics of API and relay; port 0 takes a free one"`
	AllowedHosts        []string      `env:"ALLOWED_HOSTS" doc:"host names that addresses on loopback serve besides localhost, separated by commas, such as that of a proxy on this machine; * is any; default none, because web pages can reach loopback addresses by DNS rebinding"`
	PublicURL           Address       `env:"API_PUBLIC_URL" check:"anonymous" doc:"scheme and host by which clients reach the API, for links; default relative links"`
	PlaintextHosts      []string      `env:"PLAINTEXT_HOSTS" doc:"hosts besides this machine that may be reached without TLS, separated by commas; * is any; default none, because credentials and personal data are readable on the way"`
	RequirePrecondition bool          `env:"API_REQUIRE_PRECONDITION" envDefault:"false" doc:"refuse updates and deletions without If-Match with 428"`
	RequestTimeout      time.Duration `env:"API_REQUEST_TIMEOUT" envDefault:"20s" min:"100ms" max:"5m" doc:"longest handling of one request"`
	MaxInFlight         int           `env:"API_MAX_IN_FLIGHT" envDefault:"512" min:"1" max:"1000000" doc:"requests handled at the same time, counted once their bodies have arrived; beyond, 503; one caller may have as many as are free; beyond, 429"`
	MaxConnections      int           `env:"API_MAX_CONNECTIONS" envDefault:"2000" min:"1" max:"1000000" doc:"open connections; one more takes the place of one of the caller or address that has most, unless its request is being handled; each costs some 20 KB, 64 KB more while a body arrives, and at most 128 KB in the kernel"`
	PerAddress          int           `env:"MAX_CONNECTIONS_PER_ADDRESS" envDefault:"0" min:"0" max:"1000000" doc:"open connections of one address; one more takes the place of another of that address; 0 is no limit, because behind a proxy all clients have one address"`
	RateLimit           float64       `env:"API_RATE_LIMIT" envDefault:"100" min:"0" max:"1000000" doc:"requests per second of each authenticated caller on average, of refusals to each address, and of documents to each address; beyond, 429; 0 is no limit"`
	RateBurst           int           `env:"API_RATE_BURST" envDefault:"200" min:"1" max:"1000000" doc:"requests of each authenticated caller at once"`
	TokenKeys           TokenKeys     `env:"API_TOKEN_KEYS" doc:"keys that protect continuation tokens, base64 of at least 32 random bytes, separated by commas, the first is used for new tokens and for the pseudonyms of callers in the log; default a random key of this process"`
	DeletedTTL          time.Duration `env:"DELETED_TTL" envDefault:"720h" min:"1m" max:"87600h" doc:"lifetime of the document of a deleted contact, which has no personal data"`
	IdempotencyTTL      time.Duration `env:"IDEMPOTENCY_TTL" envDefault:"24h" min:"1m" max:"87600h" doc:"how long the Idempotency-Key of an update is remembered; that of a creation is as long as the contact exists"`
	Audit               bool          `env:"AUDIT" envDefault:"false" doc:"keep and offer an audit trail of each contact: who changed it when, with which events"`
	AuditTTL            time.Duration `env:"AUDIT_TTL" envDefault:"8760h" min:"1m" max:"87600h" doc:"lifetime of audit entries"`
	EventTTL            time.Duration `env:"EVENT_TTL" envDefault:"240h" min:"1m" max:"87600h" doc:"lifetime of event documents; an event not sent by then is lost"`
	MaxEventBytes       int           `env:"EVENT_MAX_BYTES" envDefault:"0" min:"0" max:"100000000" doc:"largest message of an event that the broker accepts; a change with a larger event is refused with 413, otherwise the relay would park it; 0 is no limit but that of the store; a Standard namespace of Service Bus accepts 256 KB with some 2 KB of properties: 260000"`
	// DrainTimeout bounds the graceful stop, DrainDelay included.
	DrainTimeout time.Duration `env:"DRAIN_TIMEOUT" envDefault:"20s" min:"100ms" max:"10m" doc:"longest graceful stop after SIGTERM"`
	// DrainDelay is how long the API still accepts requests after /readyz answers 503, so
	// that balancers have noticed before connections are refused. Default a quarter of
	// DrainTimeout.
	DrainDelay time.Duration `env:"API_DRAIN_DELAY" min:"0s" max:"5m" doc:"part of FEEDBOX_DRAIN_TIMEOUT in which /readyz says 503 already and requests are still taken, so that balancers can look elsewhere; default a quarter of it"`

	settings
}

// LoadAPI reads the API's configuration from environ, a list of NAME=value in
// the manner of os.Environ. The error is an [*Error] that lists every fault.
func LoadAPI(environ []string) (*API, error) {
	c := &API{}
	report := load(c, environ)
	report.plaintext = c.PlaintextHosts
	deriveEmulator(report, &c.Firestore, environ)
	checkStore(report, c.Store, c.Cosmos, c.Postgres, c.Firestore)
	checkAuth(report, c.Auth, "FEEDBOX_API_LISTEN", c.Listen, "FEEDBOX_AUTH_API_KEYS", c.APIKeys)
	checkPublicURL(report, string(c.PublicURL))
	checkTelemetry(report, environ)
	c.deriveDrain(report)
	c.settings = report.settings
	return c, report.err()
}

// deriveDrain fills the delay if none was given, and refuses one that leaves requests
// no time to end.
func (c *API) deriveDrain(report *report) {
	const name, whole = "FEEDBOX_API_DRAIN_DELAY", "FEEDBOX_DRAIN_TIMEOUT"
	switch {
	case report.faulty(name, whole):
	case !report.settings.given(name):
		c.DrainDelay = c.DrainTimeout / 4
		report.settings.derive(name, c.DrainDelay.String())
	case c.DrainDelay > c.DrainTimeout/2:
		report.add(name, "is "+c.DrainDelay.String()+", more than half of "+whole+", "+c.DrainTimeout.String(), "requests under way need time to end: lower the first or raise the second")
	}
}
