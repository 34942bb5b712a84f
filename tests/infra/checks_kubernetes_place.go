package infra

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

var kubernetesPlaceChecks = []check{
	{
		"Kubernetes: services put nothing into the environment, and what they would put is no setting", serviceLinks,
		[]seed{{apiYAML, "      enableServiceLinks: false\n", ""}, {relayYAML, "enableServiceLinks: false", "enableServiceLinks: true"}},
	},
	{
		"Kubernetes: what an autoscaler owns is in no manifest", autoscaled,
		[]seed{
			{apiYAML, "spec:\n  # No replicas", "spec:\n  replicas: 3\n  # No replicas"},
			{kedaFolder + "kustomization.yaml", "path: /spec/replicas", "path: /spec/paused"},
			{kedaFolder + "kustomization.yaml", "  - ../base\n", ""},
			{kedaFolder + "kustomization.yaml", "name: feedbox-relay", "name: feedbox-api"},
		},
	},
	{
		"Kubernetes: replicas are spread over nodes as well as zones", spread,
		[]seed{
			{apiYAML, "topologyKey: kubernetes.io/hostname", "topologyKey: topology.kubernetes.io/region"},
			{relayYAML, "whenUnsatisfiable: DoNotSchedule", "whenUnsatisfiable: ScheduleAnyway"},
			{relayYAML, "topologyKey: topology.kubernetes.io/zone", "topologyKey: kubernetes.io/os"},
		},
	},
	{
		"Kubernetes: the ops port is for the scraper alone", networkPolicy,
		[]seed{
			{policyYAML, "        - {port: http}\n", "        - {port: http}\n        - {port: ops}\n"},
			{policyYAML, "policyTypes: [Ingress, Egress]", "policyTypes: [Egress]"},
			{policyYAML, "matchLabels: {app: feedbox-relay}", "matchLabels: {app: relay}"},
			{policyYAML, "    - from:\n        - namespaceSelector:\n            matchLabels: {kubernetes.io/metadata.name: monitoring}\n      ports:", "    - ports:"},
		},
	},
	{
		"Kubernetes: each process reaches the ports that its settings name, and no others", egressPorts,
		[]seed{
			{policyYAML, "policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]"},
			{policyYAML, "        - {port: 443}\n        - {port: 5671}\n", "        - {port: 443}\n"},
			{policyYAML, "    - ports:\n        - {port: 443}\n---", "    - {}\n---"},
			{policyYAML, "        - {port: 53, protocol: UDP}\n", ""},
			{kubernetes + "postgres-sqs/access.yaml", "        - {port: 443}\n        - {port: 5432}\n", "        - {port: 443}\n        - {port: 1433}\n"},
			{kubernetes + "postgres-rabbitmq/access.yaml", "        - {port: 5671}\n", "        - {port: 5672}\n"},
			{kubernetes + "firestore-rabbitmq/access.yaml", "        - ipBlock: {cidr: 169.254.169.252/32}\n        - ipBlock: {cidr: 169.254.169.254/32}\n", "        - ipBlock: {cidr: 0.0.0.0/0}\n"},
			{consoleYAML, "        - {port: 5671}\n", "        - {port: 5671}\n        - {port: 80}\n"},
		},
	},
	{
		"Kubernetes: scrapers find the metrics, and everything to watch by is applied", scraping,
		[]seed{
			{relayYAML, "prometheus.io/port: \"8090\"", "prometheus.io/port: \"8080\""},
			{apiYAML, "        prometheus.io/scrape: \"true\"\n", ""},
			{monitoring + "pod-monitor.yaml", "values: [feedbox-api, feedbox-relay]", "values: [feedbox-api]"},
			{monitoring + "pod-monitor.yaml", "port: ops", "port: http"},
			{monitoring + "pod-monitor.yaml", "regex: container", "regex: pod"},
			{monitoring + "kustomization.yaml", "  - rules.yaml\n", ""},
		},
	},
	{
		"Kubernetes: the console is optional, a single read-only process, and reached through the ingress only", consoleManifest,
		[]seed{
			{baseFolder + "kustomization.yaml", "configMapGenerator:", "components: [../console]\nconfigMapGenerator:"},
			{consoleFolder + "kustomization.yaml", "kind: Component", "kind: Kustomization"},
			{consoleYAML, "args: [console]", "args: [console, --actions]"},
			{consoleYAML, "replicas: 1", "replicas: 2"},
			{consoleYAML, "strategy: {type: Recreate}", "strategy: {type: RollingUpdate}"},
			{consoleYAML, "runAsNonRoot: true", "runAsNonRoot: false"},
			{consoleYAML, "path: /readyz", "path: /livez"},
			{consoleYAML, "limits: {cpu: \"1\", memory: 512Mi}", "limits: {cpu: \"1\"}"},
			{consoleYAML, "serviceAccountName: feedbox-console", "serviceAccountName: feedbox-relay"},
			{consoleYAML, "enableServiceLinks: false", "enableServiceLinks: true"},
			{consoleYAML, "name: FEEDBOX_CONSOLE_LISTEN, value: \":8070\"", "name: FEEDBOX_CONSOLE_LISTEN, value: \":8090\""},
			{consoleYAML, "name: FEEDBOX_CONSOLE_LISTEN", "name: FEEDBOX_CONSOLE_LISTENS"},
			{consoleYAML, "        - {port: http}\n", "        - {port: http}\n        - {port: ops}\n"},
			{consoleYAML, "    - from:\n        - namespaceSelector:\n            matchLabels: {kubernetes.io/metadata.name: ingress-nginx} # fill in\n      ports:", "    - ports:"},
			{consoleYAML, "port: 80, targetPort: http", "port: 80, targetPort: ops"},
		},
	},
}

// serviceLinks checks the pods and the variables that the kubelet would add for services.
func serviceLinks(w *world, report func(string, ...any)) {
	kubernetesApps(w, report, func(process, _ string, pod, _ any) {
		want(report, process+": enableServiceLinks", at(pod, "enableServiceLinks"), false)
	})
	services := 0
	for _, file := range []string{apiYAML, relayYAML} {
		for _, d := range documents(w, file, report) {
			if at(d, "kind") != "Service" {
				continue
			}
			services++
			name := strings.ToUpper(strings.ReplaceAll(text(at(d, "metadata", "name")), "-", "_"))
			links := settings(w, envSettings)
			for _, link := range [][2]string{
				{"_SERVICE_HOST", "10.0.0.1"},
				{"_SERVICE_PORT", "80"},
				{"_SERVICE_PORT_HTTP", "80"},
				{"_PORT", "tcp://10.0.0.1:80"},
				{"_PORT_80_TCP", "tcp://10.0.0.1:80"},
				{"_PORT_80_TCP_PROTO", "tcp"},
				{"_PORT_80_TCP_PORT", "80"},
				{"_PORT_80_TCP_ADDR", "10.0.0.1"},
			} {
				links = append(links, variable{name: name + link[0], value: link[1]})
			}
			for _, process := range []string{"api", "relay"} {
				if err := load(process, links); err != nil {
					report("beside the service %s the %s does not start: %v", name, process, err)
				}
			}
		}
	}
	want(report, "services", services, 1)
}

func autoscaled(w *world, report func(string, ...any)) {
	scaler := manifest(w, apiYAML, "HorizontalPodAutoscaler", report)
	want(report, "what is scaled", at(scaler, "spec", "scaleTargetRef", "name"), any("feedbox-api"))
	if n := at(manifest(w, apiYAML, "Deployment", report), "spec", "replicas"); n != nil {
		report("the API has %v replicas beside its autoscaler", n)
	}
	k := read(w, kedaFolder+"kustomization.yaml", report)
	var resources []string
	for _, r := range list(at(k, "resources")) {
		resources = append(resources, text(r))
	}
	if !slices.Contains(resources, "../base") || !slices.Contains(resources, "scaledobject.yaml") {
		report("keda/ holds %v", resources)
	}
	patch := at(k, "patches", 0)
	var steps []map[string]any
	if err := yaml.Unmarshal([]byte(text(at(patch, "patch"))), &steps); err != nil || len(steps) != 1 || steps[0]["op"] != "remove" || steps[0]["path"] != "/spec/replicas" {
		report("keda/ leaves the relay's replicas in place: %v", at(patch, "patch"))
	}
	want(report, "whose replicas are left out", at(patch, "target", "name"), any("feedbox-relay"))
}

func spread(w *world, report func(string, ...any)) {
	kubernetesApps(w, report, func(process, _ string, pod, _ any) {
		found := map[string]string{}
		for _, c := range list(at(pod, "topologySpreadConstraints")) {
			want(report, process+": who is spread", at(c, "labelSelector", "matchLabels", "app"), any("feedbox-"+process))
			found[text(at(c, "topologyKey"))] = text(at(c, "whenUnsatisfiable"))
		}
		if found["topology.kubernetes.io/zone"] == "" || found["kubernetes.io/hostname"] == "" {
			report("%s: spread over %v", process, found)
		}
		if process == "relay" {
			want(report, "two relays on one node", found["kubernetes.io/hostname"], "DoNotSchedule")
		}
	})
}

const (
	monitoring = kubernetes + "monitoring/"
	rulesYAML  = monitoring + "rules.yaml"
)

func scraping(w *world, report func(string, ...any)) {
	m := at(manifest(w, monitoring+"pod-monitor.yaml", "PodMonitor", report), "spec")
	want(report, "the port that is scraped", at(m, "podMetricsEndpoints", 0, "port"), any("ops"))
	want(report, "the path that is scraped", at(m, "podMetricsEndpoints", 0, "path"), any("/metrics"))
	// The operator gives each target the label container, and Prometheus then renames that of a metric. The rules
	// distinguish the containers of a relay by the label of the metric.
	if strings.Contains(w.texts[rulesYAML], "by (container") && !slices.ContainsFunc(list(at(m, "podMetricsEndpoints", 0, "relabelings")), func(r any) bool {
		return at(r, "action") == "labeldrop" && at(r, "regex") == "container"
	}) {
		report("the label container of the pods replaces that of the metrics, by which the rules group")
	}
	var apps []string
	for _, v := range list(at(m, "selector", "matchExpressions", 0, "values")) {
		apps = append(apps, text(v))
	}
	for process, file := range map[string]string{"api": apiYAML, "relay": relayYAML} {
		if !slices.Contains(apps, "feedbox-"+process) {
			report("nothing scrapes the %s", process)
		}
		notes := at(manifest(w, file, "Deployment", report), "spec", "template", "metadata", "annotations")
		want(report, process+": prometheus.io/scrape", at(notes, "prometheus.io/scrape"), any("true"))
		want(report, process+": prometheus.io/path", at(notes, "prometheus.io/path"), any("/metrics"))
		for _, v := range settings(w, envSettings) {
			if v.name == "FEEDBOX_OPS_LISTEN" {
				want(report, process+": prometheus.io/port", ":"+text(at(notes, "prometheus.io/port")), v.value)
			}
		}
	}
	k := read(w, monitoring+"kustomization.yaml", report)
	resources := text(at(k, "resources", 0)) + " " + text(at(k, "resources", 1)) + " " + text(at(k, "configMapGenerator", 0, "files", 0))
	want(report, "what to watch by", resources, "pod-monitor.yaml rules.yaml dashboard.json")
}

func networkPolicy(w *world, report func(string, ...any)) {
	guarded := map[string]bool{}
	for _, d := range documents(w, policyYAML, report) {
		who := text(at(d, "spec", "podSelector", "matchLabels", "app"))
		guarded[who] = at(d, "kind") == "NetworkPolicy" && at(d, "spec", "policyTypes", 0) == "Ingress"
		for _, rule := range list(at(d, "spec", "ingress")) {
			ports := list(at(rule, "ports"))
			if len(ports) == 0 {
				report("%s: a rule is for all ports", who)
			}
			for _, p := range ports {
				if at(p, "port") == "ops" && at(rule, "from", 0, "namespaceSelector", "matchLabels") == nil {
					report("%s: everybody reaches the ops port", who)
				}
			}
		}
	}
	for _, who := range []string{"feedbox-api", "feedbox-relay"} {
		if !guarded[who] {
			report("no policy guards %s", who)
		}
	}
}

// egressPorts compares the ports of each policy with those of the stores and brokers in the settings.
// A patch of a pair replaces the rules of the base.
func egressPorts(w *world, report func(string, ...any)) {
	stores := map[string]string{"cosmos": "443", "firestore": "443", "postgres": "5432"}
	brokers := map[string]string{"servicebus": "5671", "rabbitmq": "5671", "sqs": "443"}
	compare := func(file, process, store, broker string) {
		wanted := []string{"53/TCP", "53/UDP", stores[store]}
		if process != "relay" { // tokens of callers
			wanted = append(wanted, "443")
		}
		if process != "api" {
			wanted = append(wanted, brokers[broker])
		}
		if store == "firestore" {
			wanted = append(wanted, "80 of the node", "988 of the node")
		}
		slices.Sort(wanted)
		for _, d := range documents(w, file, report) {
			if at(d, "kind") != "NetworkPolicy" || at(d, "metadata", "name") != any("feedbox-"+process) {
				continue
			}
			want(report, file+": ports of the "+process, fmt.Sprint(reachable(d)), fmt.Sprint(slices.Compact(wanted)))
			return
		}
		report("%s: nothing restricts the %s", file, process)
	}
	for _, process := range []string{"api", "relay"} {
		compare(policyYAML, process, "cosmos", "servicebus")
		for _, pair := range pairs {
			store, broker, _ := strings.Cut(pair, "-")
			file := kubernetes + pair + "/access.yaml"
			if pair == "cosmos-rabbitmq" { // the ports of the base
				file = policyYAML
			}
			compare(file, process, store, broker)
		}
	}
	compare(consoleYAML, "console", "cosmos", "servicebus")
	for _, file := range []string{policyYAML, consoleYAML} {
		for _, d := range documents(w, file, report) {
			if at(d, "kind") == "NetworkPolicy" {
				want(report, file+": kinds of rules", fmt.Sprint(at(d, "spec", "policyTypes")), "[Ingress Egress]")
			}
		}
	}
}

// reachable returns the sorted ports of a policy's egress rules.
func reachable(policy any) (ports []string) {
	for _, rule := range list(at(policy, "spec", "egress")) {
		suffix := ""
		for _, to := range list(at(rule, "to")) {
			if cidr := text(at(to, "ipBlock", "cidr")); strings.HasPrefix(cidr, "169.254.169.25") && strings.HasSuffix(cidr, "/32") {
				suffix = " of the node"
			}
		}
		if len(list(at(rule, "ports"))) == 0 {
			ports = append(ports, "all")
		}
		for _, p := range list(at(rule, "ports")) {
			name := fmt.Sprint(at(p, "port")) + suffix
			if protocol := text(at(p, "protocol")); protocol != "" {
				name += "/" + protocol
			}
			ports = append(ports, name)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

const (
	consoleFolder = kubernetes + "console/"
	consoleYAML   = consoleFolder + "console.yaml"
)

func consoleManifest(w *world, report func(string, ...any)) {
	k := read(w, consoleFolder+"kustomization.yaml", report)
	want(report, "the kind of console/, which its parent includes", at(k, "kind"), any("Component"))
	want(report, "the components of base", at(read(w, baseFolder+"kustomization.yaml", report), "components"), nil)

	spec := at(manifest(w, consoleYAML, "Deployment", report), "spec")
	pod := at(spec, "template", "spec")
	container := at(pod, "containers", 0)
	want(report, "replicas of the console, whose sessions are of one process", fmt.Sprint(at(spec, "replicas"), " ", at(spec, "strategy", "type")), "1 Recreate")
	want(report, "arguments of the console", fmt.Sprint(at(container, "args")), "[console]")
	want(report, "console: enableServiceLinks", at(pod, "enableServiceLinks"), any(false))
	want(report, "console: the label for workload identity", at(spec, "template", "metadata", "labels", "azure.workload.identity/use"), any("true"))
	identity := at(manifest(w, consoleYAML, "ServiceAccount", report), "metadata")
	want(report, "the account of the console", at(pod, "serviceAccountName"), at(identity, "name"))
	if at(identity, "annotations", "azure.workload.identity/client-id") == nil {
		report("the console has no identity")
	}
	confined(report, "console", pod, container)
	probed(w, report, "console", container)

	variables := settings(w, envSettings)
	port := fmt.Sprint(at(container, "ports", 0, "name"), " :", at(container, "ports", 0, "containerPort"))
	for _, e := range list(at(container, "env")) {
		variables = append(variables, variable{name: text(at(e, "name")), value: text(at(e, "value"))})
		if at(e, "name") == "FEEDBOX_CONSOLE_LISTEN" {
			want(report, "the port of the console", port, "http "+text(at(e, "value")))
		}
	}
	if err := load("console", variables); err != nil {
		report("the console does not start: %v", err)
	}

	want(report, "the port of the console's service", at(manifest(w, consoleYAML, "Service", report), "spec", "ports", 0, "targetPort"), any("http"))
	policy := at(manifest(w, consoleYAML, "NetworkPolicy", report), "spec")
	want(report, "the pods of the console's policy", at(policy, "podSelector", "matchLabels", "app"), any("feedbox-console"))
	rule := at(policy, "ingress", 0)
	if at(rule, "from", 0, "namespaceSelector", "matchLabels") == nil || len(list(at(policy, "ingress"))) != 1 || fmt.Sprint(at(rule, "ports")) != "[map[port:http]]" {
		report("the console is reached by %v", at(policy, "ingress"))
	}
}
