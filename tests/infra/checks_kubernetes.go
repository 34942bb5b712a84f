package infra

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"feedbox/infrastructure/process/config"
)

const (
	kubernetes  = "bicep/kubernetes/"
	baseFolder  = kubernetes + "base/"
	apiYAML     = baseFolder + "api.yaml"
	relayYAML   = baseFolder + "relay.yaml"
	envSettings = baseFolder + "feedbox.env"
	kedaFolder  = kubernetes + "keda/"
	scaledYAML  = kedaFolder + "scaledobject.yaml"
	policyYAML  = baseFolder + "network-policy.yaml"
)

// documents parses a file of several YAML documents.
func documents(w *world, file string, report func(string, ...any)) []any {
	var all []any
	decoder := yaml.NewDecoder(bytes.NewBufferString(w.texts[file]))
	for {
		var v any
		if err := decoder.Decode(&v); err != nil {
			if err.Error() != "EOF" {
				report("%s is not YAML: %v", file, err)
			}
			return all
		}
		all = append(all, v)
	}
}

// manifest finds a document by kind in the file of a process.
func manifest(w *world, file, kind string, report func(string, ...any)) any {
	for _, d := range documents(w, file, report) {
		if at(d, "kind") == kind {
			return d
		}
	}
	report("%s has no %s", file, kind)
	return nil
}

// kubernetesApps calls visit for each of the two deployments.
func kubernetesApps(w *world, report func(string, ...any), visit func(process, file string, pod, container any)) {
	for process, file := range map[string]string{"api": apiYAML, "relay": relayYAML} {
		pod := at(manifest(w, file, "Deployment", report), "spec", "template", "spec")
		visit(process, file, pod, at(pod, "containers", 0))
	}
}

// settings returns the variables in a file like feedbox.env.
func settings(w *world, file string) []variable {
	var all []variable
	for line := range strings.Lines(w.texts[file]) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			all = append(all, variable{name: name, value: value})
		}
	}
	return all
}

var kubernetesChecks = []check{
	{
		"Kubernetes: nobody is root and nothing is writable", func(w *world, report func(string, ...any)) {
			kubernetesApps(w, report, func(process, _ string, pod, container any) { confined(report, process, pod, container) })
		},
		[]seed{{apiYAML, "runAsNonRoot: true", "runAsNonRoot: false"}, {relayYAML, "drop: [ALL]", "drop: [NET_RAW]"}},
	},
	{
		"Kubernetes: probes of each kind, limits, grace and a disruption budget", kubernetesHealth,
		[]seed{
			{apiYAML, "livenessProbe:\n            httpGet: {path: /livez", "livenessProbe:\n            httpGet: {path: /readyz"},
			{relayYAML, "          startupProbe:\n", "          startupProbes:\n"},
			{relayYAML, "limits: {cpu: \"1\", memory: 512Mi}", "limits: {cpu: \"1\"}"},
			{relayYAML, "terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: 28"},
			{apiYAML, "maxUnavailable: 1\n  selector:\n    matchLabels: {app: feedbox-api}", "maxUnavailable: 1\n  selector:\n    matchLabels: {app: feedbox}"},
			{envSettings, "FEEDBOX_OPS_LISTEN=:8090", "FEEDBOX_OPS_LISTEN=127.0.0.1:8090"},
		},
	},
	{
		"Kubernetes: the service accepts its settings, which are those of Container Apps", kubernetesSettings,
		[]seed{
			{envSettings, "FEEDBOX_EVENT_TTL=240h", "FEEDBOX_EVENT_TTL=24h"},
			{envSettings, "FEEDBOX_LOG_FORMAT", "FEEDBOX_LOG_FORM"},
			{envSettings, "FEEDBOX_COSMOS_LEASES=leases", "FEEDBOX_COSMOS_LEASES=lease"},
			{envSettings, "FEEDBOX_AUTH=entra\n", ""},
			{envSettings, "AZURE_TOKEN_CREDENTIALS=WorkloadIdentityCredential\n", "FEEDBOX_COSMOS_KEY=x\n"},
		},
	},
	{
		"Kubernetes: two relays, no service before them, workload identity", func(w *world, report func(string, ...any)) {
			want(report, "replicas of the relay", fmt.Sprint(at(manifest(w, relayYAML, "Deployment", report), "spec", "replicas")), "2")
			for _, d := range documents(w, relayYAML, report) {
				if kind := text(at(d, "kind")); kind == "Service" || kind == "Ingress" {
					report("the relay has a %s", kind)
				}
			}
			accounts := map[string]bool{}
			for _, d := range documents(w, baseFolder+"service-accounts.yaml", report) {
				accounts[text(at(d, "metadata", "name"))] = at(d, "metadata", "annotations", "azure.workload.identity/client-id") != nil
			}
			kubernetesApps(w, report, func(process, file string, pod, container any) {
				label := at(manifest(w, file, "Deployment", report), "spec", "template", "metadata", "labels", "azure.workload.identity/use")
				want(report, process+": the label for workload identity", label, "true")
				want(report, process+": its argument", at(container, "args", 0), any(process))
				if name := text(at(pod, "serviceAccountName")); name != "feedbox-"+process || !accounts[name] {
					report("the %s runs as %q, which has no identity", process, name)
				}
			})
		},
		[]seed{
			{relayYAML, "replicas: 2", "replicas: 1"},
			{relayYAML, "kind: PodDisruptionBudget", "kind: Service"},
			{apiYAML, "serviceAccountName: feedbox-api", "serviceAccountName: feedbox-relay"},
			{relayYAML, "azure.workload.identity/use: \"true\"", "azure.workload.identity/use: true"},
			{baseFolder + "service-accounts.yaml", "name: feedbox-relay\n  annotations:\n    azure.workload.identity/client-id", "name: feedbox-relay\n  annotations:\n    client-id"},
		},
	},
	{
		"KEDA reads our leases and never stops the relay", scaledObject,
		[]seed{
			{scaledYAML, "processorName: feedbox\n", "processorName: relay\n"},
			{scaledYAML, "leaseContainerId: leases", "leaseContainerId: lease"},
			{scaledYAML, "minReplicaCount: 2", "minReplicaCount: 0"},
			{scaledYAML, "type: azure-cosmosdb", "type: azure-servicebus"},
			{scaledYAML, "provider: azure-workload", "provider: none"},
			{envSettings, "FEEDBOX_PROCESSOR=feedbox", "FEEDBOX_PROCESSOR=other"},
		},
	},
	{
		"KEDA sums the lag of several containers, and takes none that it cannot read for zero", severalScaled,
		[]seed{
			{kubernetes + "README.md", "formula: data + orders,", "formula: data,"},
			{kubernetes + "README.md", "leaseContainerId: orders-leases", "leaseContainerId: leases"},
			{kubernetes + "README.md", "path: /spec/triggers/0/name, value: data", "path: /spec/triggers/0/name, value: data-"},
			{kubernetes + "README.md", "RELAY_CONTAINERS=orders/", "RELAY_CONTAINERS=invoices/"},
			{kubernetes + "README.md", "target: \"100\"", "target: \"1000\""},
			{scaledYAML, "  cooldownPeriod: 300\n", "  cooldownPeriod: 300\n  fallback: {failureThreshold: 3, replicas: 2}\n"},
		},
	},
	{
		"kustomize knows every manifest", func(w *world, report func(string, ...any)) {
			k := read(w, baseFolder+"kustomization.yaml", report)
			var listed []string
			for _, r := range list(at(k, "resources")) {
				listed = append(listed, baseFolder+text(r))
			}
			for file := range w.texts {
				if !strings.HasPrefix(file, baseFolder) || !strings.HasSuffix(file, ".yaml") || file == baseFolder+"kustomization.yaml" {
					continue
				}
				if !slices.Contains(listed, file) {
					report("kustomization.yaml does not list %s", file)
				}
			}
			for _, file := range listed {
				if w.texts[file] == "" {
					report("kustomization.yaml lists %s, which is not there", file)
				}
			}
			want(report, "the file of settings", at(k, "configMapGenerator", 0, "envs", 0), "feedbox.env")
		},
		[]seed{{baseFolder + "kustomization.yaml", "  - relay.yaml\n", ""}, {baseFolder + "kustomization.yaml", "- api.yaml", "- web.yaml"}},
	},
}

func confined(report func(string, ...any), process string, pod, container any) {
	want(report, process+": runAsNonRoot", at(pod, "securityContext", "runAsNonRoot"), true)
	want(report, process+": runAsUser", fmt.Sprint(at(pod, "securityContext", "runAsUser")), "65532")
	want(report, process+": seccomp", at(pod, "securityContext", "seccompProfile", "type"), "RuntimeDefault")
	want(report, process+": readOnlyRootFilesystem", at(container, "securityContext", "readOnlyRootFilesystem"), true)
	want(report, process+": allowPrivilegeEscalation", at(container, "securityContext", "allowPrivilegeEscalation"), false)
	want(report, process+": dropped capabilities", at(container, "securityContext", "capabilities", "drop", 0), "ALL")
}

// probed checks the ops port, the probes and the resources of a container.
func probed(w *world, report func(string, ...any), process string, container any) {
	ops := ""
	for _, p := range list(at(container, "ports")) {
		if at(p, "name") == "ops" {
			ops = ":" + fmt.Sprint(at(p, "containerPort"))
		}
	}
	for _, v := range settings(w, envSettings) {
		if v.name == "FEEDBOX_OPS_LISTEN" {
			want(report, process+": the port of probes", ops, v.value)
		}
	}
	for probe, p := range map[string]string{"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"} {
		want(report, process+": the path of "+probe, at(container, probe, "httpGet", "path"), any(p))
		want(report, process+": the port of "+probe, at(container, probe, "httpGet", "port"), "ops")
	}
	for _, resource := range []string{"cpu", "memory"} {
		if at(container, "resources", "limits", resource) == nil || at(container, "resources", "requests", resource) == nil {
			report("%s: no request or limit of %s", process, resource)
		}
	}
}

func kubernetesHealth(w *world, report func(string, ...any)) {
	kubernetesApps(w, report, func(process, file string, pod, container any) {
		probed(w, report, process, container)
		drain := duration(settings(w, envSettings), "FEEDBOX_DRAIN_TIMEOUT")
		var waits int64
		_, _ = fmt.Sscan(fmt.Sprint(at(pod, "terminationGracePeriodSeconds")), &waits) // 0 is reported below
		if drain <= 0 || waits <= drain+stopMargin {
			report("%s: the platform waits %d s, the drain takes %d s and %d s more", process, waits, drain, stopMargin)
		}
		budget := manifest(w, file, "PodDisruptionBudget", report)
		want(report, process+": whom the budget is for", at(budget, "spec", "selector", "matchLabels", "app"), any("feedbox-"+process))
	})
}

// kubernetesSettings compares feedbox.env with the variables in Container Apps.
func kubernetesSettings(w *world, report func(string, ...any)) {
	known := map[string]bool{}
	for _, v := range config.Variables() {
		known[v.Name] = !v.Secret
	}
	given := map[string]string{}
	for _, v := range settings(w, envSettings) {
		if given[v.name] = v.value; !known[v.name] && !slices.Contains(others, v.name) {
			report("feedbox.env has %s, which is not a setting or a secret", v.name)
		}
	}
	for _, process := range []string{"api", "relay"} {
		if err := load(process, settings(w, envSettings)); err != nil {
			report("the %s does not start: %v", process, err)
		}
	}
	// Values of an account, a tenant or the platform differ.
	differ := []string{
		"FEEDBOX_COSMOS_ENDPOINT", "FEEDBOX_SERVICEBUS_NAMESPACE", "FEEDBOX_AUTH_ISSUER", "FEEDBOX_AUTH_AUDIENCE",
		"FEEDBOX_API_PUBLIC_URL", "AZURE_TOKEN_CREDENTIALS", "AZURE_CLIENT_ID", "OTEL_EXPORTER_OTLP_ENDPOINT",
	}
	for _, r := range w.prod {
		for _, v := range environment(r) {
			if !slices.Contains(differ, v.name) && v.secret == "" && given[v.name] != v.value {
				report("%s is %q in Kubernetes and %q in Container Apps", v.name, given[v.name], v.value)
			}
		}
	}
}

func scaledObject(w *world, report func(string, ...any)) {
	given := map[string]string{}
	for _, v := range settings(w, envSettings) {
		given[v.name] = v.value
	}
	o := manifest(w, scaledYAML, "ScaledObject", report)
	trigger := at(o, "spec", "triggers", 0)
	triggerOf(report, trigger, given)
	want(report, "minReplicaCount", fmt.Sprint(at(o, "spec", "minReplicaCount")), "2")
	want(report, "what is scaled", at(o, "spec", "scaleTargetRef", "name"), "feedbox-relay")
	authentication := manifest(w, scaledYAML, "TriggerAuthentication", report)
	want(report, "how KEDA authenticates", at(authentication, "spec", "podIdentity", "provider"), "azure-workload")
	want(report, "whose authentication", at(trigger, "authenticationRef", "name"), at(authentication, "metadata", "name"))
}

// triggerOf compares a trigger with the settings of the relay.
func triggerOf(report func(string, ...any), trigger any, given map[string]string) {
	want(report, "the trigger", at(trigger, "type"), "azure-cosmosdb")
	for name, setting := range map[string]string{
		"endpoint": "FEEDBOX_COSMOS_ENDPOINT", "databaseId": "FEEDBOX_COSMOS_DATABASE", "containerId": "FEEDBOX_COSMOS_CONTAINER",
		"leaseDatabaseId": "FEEDBOX_COSMOS_DATABASE", "leaseContainerId": "FEEDBOX_COSMOS_LEASES", "processorName": "FEEDBOX_PROCESSOR",
	} {
		want(report, name+" of the trigger", at(trigger, "metadata", name), any(given[setting]))
	}
}

// scaledForSeveral returns the scaled object after the patches of the kustomization for several containers
// in README.md, and the value of FEEDBOX_RELAY_CONTAINERS there.
func scaledForSeveral(w *world, report func(string, ...any)) (object any, others string) {
	_, example, _ := strings.Cut(w.texts[kubernetes+"README.md"], "```yaml\napiVersion: kustomize")
	example, _, _ = strings.Cut("apiVersion: kustomize"+example, "```")
	var kustomization, operations any
	err := yaml.Unmarshal([]byte(example), &kustomization)
	if err == nil {
		err = yaml.Unmarshal([]byte(text(at(kustomization, "patches", 0, "patch"))), &operations)
	}
	if err != nil || len(list(operations)) == 0 {
		report("README.md has no kustomization for several containers: %v", err)
	}
	object = manifest(w, scaledYAML, "ScaledObject", report)
	for _, o := range list(operations) {
		object = put(object, strings.Split(text(at(o, "path")), "/")[1:], at(o, "value"))
	}
	others, _ = strings.CutPrefix(text(at(kustomization, "configMapGenerator", 0, "literals", 0)), "FEEDBOX_RELAY_CONTAINERS=")
	return object, others
}

// put sets the value at a path of a JSON patch; the step "-" appends to a list.
func put(v any, steps []string, value any) any {
	if len(steps) == 0 {
		return value
	}
	switch v := v.(type) {
	case map[string]any:
		v[steps[0]] = put(v[steps[0]], steps[1:], value)
	case []any:
		if steps[0] == "-" {
			return append(v, value)
		}
		if i, err := strconv.Atoi(steps[0]); err == nil && i < len(v) {
			v[i] = put(v[i], steps[1:], value)
		}
	}
	return v
}

// severalScaled checks the example for several containers. Without a formula the autoscaler takes the
// largest of the metrics, and with a fallback it takes a container that fails for that number of replicas.
func severalScaled(w *world, report func(string, ...any)) {
	object, others := scaledForSeveral(w, report)
	given := map[string]string{}
	environ := []string{"FEEDBOX_RELAY_CONTAINERS=" + others}
	for _, v := range settings(w, envSettings) {
		given[v.name] = v.value
		environ = append(environ, v.name+"="+v.value)
	}
	cfg, err := config.LoadRelay(environ)
	if err != nil {
		report("the relay does not start: %v", err)
		return
	}
	triggers := list(at(object, "spec", "triggers"))
	want(report, "the number of triggers", len(triggers), len(cfg.Containers()))
	var sum []string
	for i, one := range cfg.Containers()[:min(len(triggers), len(cfg.Containers()))] {
		given["FEEDBOX_COSMOS_CONTAINER"], given["FEEDBOX_COSMOS_LEASES"] = one.Cosmos.Container, one.Cosmos.Leases
		triggerOf(report, triggers[i], given)
		name := text(at(triggers[i], "name"))
		if sum = append(sum, name); !regexp.MustCompile(`^[a-z]\w*$`).MatchString(name) {
			report("the trigger %q cannot be named in a formula", name)
		}
		want(report, "authentication of "+name, at(triggers[i], "authenticationRef", "name"), "feedbox-relay")
		want(report, "target of the formula", at(object, "spec", "advanced", "scalingModifiers", "target"), at(triggers[i], "metadata", "changeFeedLagThreshold"))
	}
	want(report, "the formula", at(object, "spec", "advanced", "scalingModifiers", "formula"), any(strings.Join(sum, " + ")))
	want(report, "the fallback", at(object, "spec", "fallback"), nil)
}
