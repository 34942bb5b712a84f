package plan

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// maxReplicas is the highest expectedPartitions of bicep/main.bicep.
const maxReplicas = 300

// maxNamespaces is the highest messagingNamespaces there.
const maxNamespaces = 16

// maxContainers is the number of moreContainers there, and that of the API.
const maxContainers = 31

// BicepParam returns the sizes of the plan as lines for a parameter file of bicep/main.bicep. They
// replace the lines of the same names in a copy of bicep/prod.bicepparam. It refuses a plan that one
// deployment cannot hold.
func (p *Plan) BicepParam() (string, error) {
	var faults []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	refuse(p.Containers > maxContainers, "the plan needs %d containers, a deployment has at most %d", p.Containers, maxContainers)
	containers := float64(p.Containers)
	leases := thousands(p.LeaseUnits / containers)
	refuse(float64(leases) > containerRate.Value, "the leases of a container need %s RU/s, a container has at most %s without a support request: plan with a longer --takeover", number(float64(leases)), number(containerRate.Value))
	namespaces, units := p.Namespaces, p.UnitsOfNamespace
	if most := unitsOfPartition.Value; float64(units) > most { // the namespaces of a deployment have no partitions
		namespaces, units = count(float64(p.MessagingUnits)/most), int(most)
	}
	refuse(namespaces > maxNamespaces, "the plan needs %d messaging units, a deployment has at most %d namespaces of %d", p.MessagingUnits, maxNamespaces, int(unitsOfPartition.Value))
	refuse(p.ranges() > maxReplicas, "the plan needs %s partitions, a deployment has at most %d", number(float64(p.ranges())), maxReplicas)
	refuse(p.Input.Versions, "the plan needs the feed of all versions: plan without --versions, and set FEEDBOX_COSMOS_FEED, FEEDBOX_COSMOS_FEED_RETENTION and FEEDBOX_EVENT_TTL of the containers by hand")
	refuse(p.Input.Regions > 2, "the plan has %d regions, a deployment at most 2", p.Input.Regions)
	if len(faults) > 0 {
		return "", errors.Join(faults...)
	}
	failover := ""
	if p.Input.Regions == 2 {
		failover = "// Set FAILOVER_LOCATION to the second region.\n"
	}
	more := ""
	if p.Containers > 1 {
		var names []string
		for n := range p.Containers - 1 {
			names = append(names, fmt.Sprintf("'data-%d'", n+1))
		}
		more = "// Your writers choose a container by a stable hash of the key; the API writes to data only.\nparam moreContainers = [ " + strings.Join(names, ", ") + " ]\n"
	}
	return fmt.Sprintf(`// Sizes of feedbox plan for %s changes a second.
%s%sparam expectedPartitions = %d
param dataThroughput = %d
param leasesThroughput = %d
param messagingNamespaces = %d
param messagingUnits = %d
param topicMegabytes = %d
param eventTtlHours = %d
param duplicateWindow = '%s'
`, number(p.Input.Changes), failover, more, max(p.ranges(), 2), thousands(p.RequestUnits/containers), leases, namespaces, units, p.Input.TopicGB*1024,
		int(time.Duration(p.Input.TTL.hours(math.Ceil)).Hours()), p.Input.DuplicateWindow.iso()), nil
}

// thousands rounds up to the steps of autoscale throughput.
func thousands(n float64) int { return count(n/1000) * 1000 }

// iso returns the time as Azure Resource Manager takes it.
func (d Duration) iso() string { return "PT" + strings.ToUpper(d.String()) }
