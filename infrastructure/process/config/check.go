package config

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checks are the tests that a field names in its tag check. Each returns the
// problem, or "", and a hint.
var checks = map[string]func(string) (problem, hint string){
	"listen":    checkListen,
	"name":      checkName,
	"anonymous": checkAnonymous,
}

func checkListen(address string) (problem, hint string) {
	const hint1 = "write host:port, for example 127.0.0.1:8080 or :8080"
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("%q is not a listen address", address), hint1
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Sprintf("%q has no valid port", address), hint1
	}
	return "", ""
}

// checkName keeps names usable as parts of document ids.
func checkName(name string) (problem, hint string) {
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool { return !validNameRune(r) }) {
		return fmt.Sprintf("%q is not a valid name", name), "use up to 100 letters, digits, '-', '_' and '.'"
	}
	return "", ""
}

func validNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}

// IsLoopback reports whether a listen address can be reached from this machine
// only. A name other than localhost counts as reachable from elsewhere.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// checkStore checks the variables of the store that is chosen.
func checkStore(report *report, s Store, c Cosmos, p Postgres, f Firestore) {
	switch s.Kind {
	case StoreCosmos:
		checkCosmos(report, c)
	case StorePostgres:
		checkPostgres(report, p)
	case StoreFirestore:
		if f.Project == "" {
			report.add("FEEDBOX_FIRESTORE_PROJECT", "is not set", "give the id of the project, for example contoso-contacts; gcloud config get project shows yours")
		}
		checkRanges(report, "FEEDBOX_FIRESTORE_RANGES", f.Ranges)
		if f.EmulatorHost != "" {
			report.refuseHosts("FEEDBOX_FIRESTORE_EMULATOR_HOST", "remove it to use the service", hostOf(f.EmulatorHost))
		}
	}
}

// deriveEmulator takes the address of the emulator from the variable of Google's clients.
func deriveEmulator(report *report, f *Firestore, environ []string) {
	const name = "FEEDBOX_FIRESTORE_EMULATOR_HOST"
	if host, _ := Lookup(environ, "FIRESTORE_EMULATOR_HOST"); host != "" && !report.settings.given(name) {
		f.EmulatorHost = host
		report.settings.derive(name, host)
	}
}

// checkRanges refuses a number that ranges cannot be cut into.
func checkRanges(report *report, name string, n int) {
	if n&(n-1) != 0 && !report.faulty(name) {
		report.add(name, fmt.Sprintf("%d is no power of two", n), "give 1, 2, 4, 8 and so on: ranges are cut in halves")
	}
}

func checkPostgres(report *report, c Postgres) {
	const name, example = "FEEDBOX_POSTGRES_URL", "write for example postgres://user:password@host:5432/contacts?sslmode=verify-full"
	switch u, err := url.Parse(c.URL.Reveal()); {
	case !c.URL.IsSet():
		report.add(name, "is not set", example)
	case err != nil || u.Host == "" && u.Query().Get("host") == "" || (u.Scheme != "postgres" && u.Scheme != "postgresql") || strings.Trim(u.Path, "/") == "":
		report.add(name, "is not the URL of a database", example)
	default:
		checkPostgresTLS(report, name, u)
	}
	checkRanges(report, "FEEDBOX_POSTGRES_RANGES", c.Ranges)
	sources := 0
	for _, given := range []bool{c.PasswordFile != "", c.PasswordCommand != "", c.Identity != "none"} {
		if given {
			sources++
		}
	}
	if sources > 1 {
		report.add("FEEDBOX_POSTGRES_PASSWORD_FILE", "FEEDBOX_POSTGRES_PASSWORD_COMMAND and FEEDBOX_POSTGRES_IDENTITY exclude each other", "keep the one that is meant")
	}
}

func checkContainers(report *report, c Cosmos) {
	if c.Container == c.Leases || c.Container == c.Parked || c.Leases == c.Parked {
		report.add("FEEDBOX_COSMOS_LEASES", "container, leases and parked must be three different containers",
			"give FEEDBOX_COSMOS_CONTAINER, FEEDBOX_COSMOS_LEASES and FEEDBOX_COSMOS_PARKED different names")
	}
}

func checkCosmos(report *report, c Cosmos) {
	const name = "FEEDBOX_COSMOS_ENDPOINT"
	if slices.ContainsFunc(c.PreferredRegions, func(region string) bool { return strings.TrimSpace(region) == "" }) { // such as after a trailing comma
		report.add("FEEDBOX_COSMOS_PREFERRED_REGIONS", "names a region that is empty", "write for example West Europe,North Europe")
	}
	if _, err := base64.StdEncoding.DecodeString(c.Key.Reveal()); err != nil { // the error would show a part of the key
		report.add("FEEDBOX_COSMOS_KEY", "is not base64", "copy the whole primary or secondary key of the account")
	}
	if c.Endpoint == "" {
		report.add(name, "is not set", "URL of the Cosmos DB account, for example https://contoso.documents.azure.com:443/")
		return
	}
	u, err := url.Parse(string(c.Endpoint))
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http"):
		report.add(name, "is not an http or https URL", "copy the URI of the account, for example https://contoso.documents.azure.com:443/")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		report.add(name, "has more than scheme, host and port", "write for example https://contoso.documents.azure.com:443/")
	case u.Scheme == "http" && !c.Key.IsSet():
		report.add(name, "is http, over which no credential is sent", "use https, or set FEEDBOX_COSMOS_KEY for an emulator")
	default:
		report.refusePlain(name, string(c.Endpoint), "http", "https")
	}
}

func checkServiceBus(report *report, c ServiceBus) {
	const connection, namespace = "FEEDBOX_SERVICEBUS_CONNECTION_STRING", "FEEDBOX_SERVICEBUS_NAMESPACE"
	switch {
	case c.ConnectionString.IsSet() && c.Namespace != "":
		report.addNoBroker(connection, "and "+namespace+" are both set", "keep the one that is meant")
	case !c.ConnectionString.IsSet() && c.Namespace == "":
		report.addNoBroker(connection, "and "+namespace+" are both missing", "set one of them")
	case c.ConnectionString.IsSet():
		text := c.ConnectionString.Reveal()
		endpoint := connectionStringPart(text, "Endpoint")
		if !strings.HasPrefix(endpoint, "sb://") {
			report.add(connection, "has no Endpoint=sb://...", "copy the whole connection string of the shared access policy")
		}
		if strings.EqualFold(connectionStringPart(text, "UseDevelopmentEmulator"), "true") {
			report.refusePlain(connection, endpoint, "sb", "a namespace of the service")
		}
	case strings.ContainsAny(c.Namespace, ":/ "):
		report.add(namespace, fmt.Sprintf("%q is not a host name", c.Namespace), "write for example contoso.servicebus.windows.net, without scheme or path")
	}
}

// TopicsBySubject returns Topics as a map.
func (s ServiceBus) TopicsBySubject() map[string]string {
	topics := make(map[string]string, len(s.Topics))
	for _, exception := range s.Topics {
		if subject, topic, ok := strings.Cut(strings.TrimSpace(exception), "="); ok {
			topics[strings.TrimSpace(subject)] = strings.TrimSpace(topic)
		}
	}
	return topics
}

// checkTopics refuses exceptions that name no subject, no topic, or a subject twice.
func checkTopics(report *report, c ServiceBus) {
	seen := map[string]bool{}
	for _, exception := range c.Topics {
		subject, topic, _ := strings.Cut(strings.TrimSpace(exception), "=")
		subject, topic = strings.TrimSpace(subject), strings.TrimSpace(topic)
		if subject == "" || topic == "" || seen[subject] {
			report.add("FEEDBOX_SERVICEBUS_TOPICS", fmt.Sprintf("%q is not a subject with its topic, each subject once", exception), "write for example OrderShippedEvent=shipping")
			return
		}
		seen[subject] = true
	}
}

// checkShards refuses entries that name no topic, no host, or a topic twice.
func checkShards(report *report, c ServiceBus) {
	const name, most = "FEEDBOX_SERVICEBUS_SHARDS", 256 // slots of keys
	seen := map[Shard]bool{}
	for i, s := range c.ShardList() {
		same := Shard{s.Topic, cmp.Or(s.Namespace, c.Namespace)}
		problem := ""
		switch {
		case s.Topic == "" || strings.HasSuffix(strings.TrimSpace(c.Shards[i]), "@") || strings.ContainsAny(s.Namespace, ":/@ "):
			problem = fmt.Sprintf("%q is neither TOPIC nor TOPIC@NAMESPACE", c.Shards[i])
		case seen[same]:
			problem = fmt.Sprintf("has %q twice", c.Shards[i])
		case i >= most:
			problem = fmt.Sprintf("has more than %d topics", most)
		}
		if problem != "" {
			report.add(name, problem, "write for example events-0,events-1@contoso-2.servicebus.windows.net")
			return
		}
		seen[same] = true
	}
}

func checkRabbitMQ(report *report, c RabbitMQ) {
	const name, hint = "FEEDBOX_RABBITMQ_URL", "write for example amqps://user:password@rabbitmq.contoso.example/vhost"
	if !c.URL.IsSet() {
		report.addNoBroker(name, "is required with FEEDBOX_BROKER=rabbitmq", hint)
		return
	}
	for _, member := range c.Members() {
		if u, err := url.Parse(member); err != nil || u.Host == "" || u.Scheme != "amqp" && u.Scheme != "amqps" {
			report.add(name, "is not an amqp or amqps URL", hint+"; those of several members of a cluster are separated by commas")
			return
		}
		report.refusePlain(name, member, "amqp", "amqps")
	}
}

const queueHint = "write for example https://sqs.eu-west-1.amazonaws.com/123456789012/contacts.fifo"

func checkSQS(report *report, c SQS) {
	const name = "FEEDBOX_SQS_QUEUE_URL"
	if c.QueueURL == "" {
		report.addNoBroker(name, "is required with FEEDBOX_BROKER=sqs", queueHint)
		return
	}
	checkQueue(report, name, c.QueueURL)
	report.refusePlain("FEEDBOX_SQS_ENDPOINT", string(c.Endpoint), "http", "https")
}

func checkQueue(report *report, name string, queue Address) {
	if u, err := url.Parse(string(queue)); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || !strings.HasSuffix(u.Path, ".fifo") {
		report.add(name, fmt.Sprintf("%q is not the URL of a FIFO queue", queue), queueHint)
	}
	report.refusePlain(name, string(queue), "http", "https")
}

func checkSNS(report *report, c SNS) {
	const name, hint = "FEEDBOX_SNS_TOPIC_ARN", "write for example arn:aws:sns:eu-west-1:123456789012:contacts.fifo"
	switch {
	case c.TopicARN == "":
		report.addNoBroker(name, "is required with FEEDBOX_BROKER=sns", hint)
	case c.Region() == "" || !strings.HasSuffix(c.TopicARN, ".fifo"):
		report.add(name, fmt.Sprintf("%q is not the ARN of a FIFO topic", c.TopicARN), hint)
	}
	report.refusePlain("FEEDBOX_SNS_ENDPOINT", string(c.Endpoint), "http", "https")
}

// connectionStringPart returns the value of one Name=value pair.
func connectionStringPart(connectionString, name string) string {
	for part := range strings.SplitSeq(connectionString, ";") {
		if key, value, ok := strings.Cut(strings.TrimSpace(part), "="); ok && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

func checkPublicURL(report *report, text string) {
	if text == "" {
		return
	}
	if u, err := url.Parse(text); err != nil || u.Host == "" || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http") {
		report.add("FEEDBOX_API_PUBLIC_URL", "is not an http or https URL", "write for example https://contacts.contoso.example")
	}
}
